import type * as kafkajs from 'kafkajs';
import type { KafkaClient } from '../operate/kafka-topic';
import { type BrokerOptions, brokersOf } from './brokers';
import { Failure } from './failure';

/** @throws Failure */
export async function kafkaClient(options: BrokerOptions): Promise<KafkaClient> {
  const brokers = await brokersOf(options, 'outbox-cli');
  let library: typeof kafkajs;
  try {
    library = await import('kafkajs');
  } catch (cause) {
    throw new Failure('What is about Kafka needs the package kafkajs: npm install kafkajs.', 1, { cause });
  }
  return new library.Kafka({ ...brokers.kafkajs(), logLevel: library.logLevel.NOTHING });
}
