import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Kafka, logLevel, Partitioners } from 'kafkajs';
import type { ClientName } from './arguments.js';
import { keyOf, payloadOf } from './event.js';

const PARTITIONS = 8;
/** Messages of one request. */
const BATCH = 1000;

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

/** A message as the relay would send it. */
export function rawRecord(n: number): RawRecord {
  const headers = { id: randomUUID(), event_type: 'bench.event', aggregate_type: 'bench.event' };
  return { key: keyOf(n), value: payloadOf(n), headers };
}

/** Sends messages batch after batch; milliseconds that it took. */
export async function sendMany(client: RawClient, topic: string, count: number): Promise<number> {
  const records = Array.from({ length: count }, (_, n) => rawRecord(n));
  const begun = performance.now();
  for (let start = 0; start < count; start += BATCH) await client.send(topic, records.slice(start, start + BATCH));
  return performance.now() - begun;
}

/** Makes a topic of its own, and deletes it in the end. */
export async function withTopic<T>(brokers: readonly string[], work: (topic: string) => Promise<T>): Promise<T> {
  const admin = kafkaJs(brokers).admin();
  await admin.connect();
  const topic = `bench-${randomUUID()}`;
  try {
    await admin.createTopics({ topics: [{ topic, numPartitions: PARTITIONS }], waitForLeaders: true });
    await untilGroupsAreReady(() => admin.fetchOffsets({ groupId: topic, topics: [topic] }));
    return await work(topic);
  } finally {
    await admin.deleteTopics({ topics: [topic] }).catch(() => undefined);
    await admin.disconnect();
  }
}

/** A broker that has just started first makes the topic of the consumer groups: not while something is measured. */
async function untilGroupsAreReady(ask: () => Promise<unknown>): Promise<void> {
  for (let tries = 50; ; tries--) {
    try {
      await ask();
      return;
    } catch (error) {
      if (tries === 0) throw error;
      await sleep(100);
    }
  }
}
