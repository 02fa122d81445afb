import { Kafka, logLevel } from 'kafkajs';
import { ORDERS_DEAD_LETTERS, Topics } from './topics.js';

/** For a client that waits for its broker as long as it takes, looking every few seconds. */
export const PATIENT = { retries: Number.MAX_SAFE_INTEGER, maxRetryTime: 5_000 } as const;

/**
 * Creates the topics of the shop that are missing. A sample may do so; where topics are made by those who run Kafka,
 * an app that makes its own would hide that one was forgotten.
 */
export async function createTopics(clientId: string, brokers: readonly string[]): Promise<void> {
  const admin = new Kafka({ clientId, brokers: [...brokers], retry: PATIENT, logLevel: logLevel.ERROR }).admin();
  await admin.connect();
  try {
    const there = await admin.listTopics();
    const missing = [...Object.values(Topics), ORDERS_DEAD_LETTERS].filter((topic) => !there.includes(topic));
    if (missing.length === 0) return;
    await admin.createTopics({ topics: missing.map((topic) => ({ topic, numPartitions: 6 })), waitForLeaders: true });
  } finally {
    await admin.disconnect();
  }
}
