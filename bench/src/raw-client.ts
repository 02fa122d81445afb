import { randomUUID } from 'node:crypto';
import { type Admin, Kafka, logLevel, Partitioners } from 'kafkajs';
import type { ClientName } from './arguments.js';

export interface RawRecord {
  readonly key: string;
  readonly value: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A Kafka client as one would use it without the library: the reference. Acknowledged by all replicas. */
export interface RawClient {
  send(topic: string, records: readonly RawRecord[]): Promise<void>;
  close(): Promise<void>;
}

export function openRawClient(client: ClientName, brokers: readonly string[]): Promise<RawClient> {
  return client === 'kafkajs' ? openKafkaJs(brokers) : openPlatformatic(brokers);
}

async function openKafkaJs(brokers: readonly string[]): Promise<RawClient> {
  const producer = kafkaJs(brokers).producer({ createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  return {
    async send(topic, records) {
      await producer.sendBatch({ acks: -1, topicMessages: [{ topic, messages: records.map((record) => ({ ...record })) }] });
    },
    close: () => producer.disconnect(),
  };
}

async function openPlatformatic(brokers: readonly string[]): Promise<RawClient> {
  const { Producer, stringSerializers } = await import('@platformatic/kafka');
  const producer = new Producer({ clientId: 'bench-raw', bootstrapBrokers: [...brokers], serializers: stringSerializers, retries: false });
  return {
    async send(topic, records) {
      await producer.send({ acks: -1, messages: records.map((record) => ({ topic, ...record })) });
    },
    close: () => producer.close(),
  };
}

export function kafkaJs(brokers: readonly string[]): Kafka {
  return new Kafka({ clientId: 'bench-raw', brokers: [...brokers], logLevel: logLevel.ERROR });
}

/** Makes a topic of its own, and deletes it in the end. */
export async function withTopic<T>(brokers: readonly string[], partitions: number, work: (topic: string, admin: Admin) => Promise<T>): Promise<T> {
  const admin = kafkaJs(brokers).admin();
  await admin.connect();
  const topic = `bench-${randomUUID()}`;
  try {
    await admin.createTopics({ topics: [{ topic, numPartitions: partitions }], waitForLeaders: true });
    return await work(topic, admin);
  } finally {
    await admin.deleteTopics({ topics: [topic] }).catch(() => undefined);
    await admin.disconnect();
  }
}
