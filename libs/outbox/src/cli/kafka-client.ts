import { Option } from 'commander';
import type * as kafkajs from 'kafkajs';
import type { KafkaClient } from '../operate/kafka-topic';
import { Failure } from './failure';
import { list } from './parse';

export function brokersOption(): Option {
  return new Option('--brokers <list>', 'brokers of Kafka, such as kafka:9092,kafka2:9092').argParser(list);
}

export async function kafkaClient(brokers: readonly string[]): Promise<KafkaClient> {
  let library: typeof kafkajs;
  try {
    library = await import('kafkajs');
  } catch (cause) {
    throw new Failure('What is about Kafka needs the package kafkajs: npm install kafkajs.', 1, { cause });
  }
  return new library.Kafka({ clientId: 'outbox-cli', brokers: [...brokers], logLevel: library.logLevel.NOTHING });
}
