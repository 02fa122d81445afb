import { randomUUID } from 'node:crypto';
import { OperationInvalidError } from '../errors';

/** What is needed of a client of kafkajs, whose package is an optional peer: `new Kafka({ … })` is one. */
export interface KafkaClient {
  admin(): KafkaAdmin;
  consumer(config: { groupId: string; maxWaitTimeInMs?: number }): KafkaReader;
}

interface KafkaAdmin {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  listTopics(): Promise<string[]>;
  fetchTopicOffsets(topic: string): Promise<{ partition: number; low: string; high: string }[]>;
  fetchTopicMetadata(options: { topics: string[] }): Promise<{ topics: KafkaTopicMetadata[] }>;
  describeConfigs(configs: { resources: { type: number; name: string; configNames?: string[] }[]; includeSynonyms: boolean }): Promise<{
    resources: { resourceName: string; configEntries: { configName: string; configValue: string }[] }[];
  }>;
  deleteGroups(groupIds: string[]): Promise<unknown>;
}

interface KafkaTopicMetadata {
  readonly name: string;
  readonly partitions: readonly { readonly partitionId: number; readonly leader: number; readonly replicas: readonly number[]; readonly isr: readonly number[] }[];
}

interface KafkaReader {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  subscribe(subscription: { topics: string[]; fromBeginning: boolean }): Promise<void>;
  seek(position: { topic: string; partition: number; offset: string }): void;
  run(config: { autoCommit: boolean; eachBatch: (payload: { batch: KafkaBatch }) => Promise<void> }): Promise<void>;
}

interface KafkaBatch {
  readonly partition: number;
  readonly messages: readonly KafkaRecord[];
  lastOffset(): string;
}

interface KafkaRecord {
  readonly offset: string;
  readonly timestamp: string;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers?: Readonly<Record<string, Buffer | string | (Buffer | string)[] | undefined>>;
}

export interface TopicRecord extends KafkaRecord {
  readonly partition: number;
}

/** Offsets by partition: from the first to before the second. */
export type Ranges = ReadonlyMap<number, { readonly from: bigint; readonly to: bigint }>;

/** Milliseconds without a record after which what was read is all that there is: what lies between was compacted away. */
const SILENCE = 10_000;

/** What the partitions of a topic hold now. @throws OperationInvalidError when there is no such topic */
export async function rangesOf(kafka: KafkaClient, topic: string): Promise<Ranges> {
  return withAdmin(kafka, async (admin) => {
    // Asking for its offsets would try for long, or create it.
    if (!(await admin.listTopics()).includes(topic)) throw new OperationInvalidError(`There is no topic ${topic}.`);
    const offsets = await admin.fetchTopicOffsets(topic);
    return new Map(offsets.map(({ partition, low, high }) => [partition, { from: BigInt(low), to: BigInt(high) }]));
  });
}

/**
 * Reads ranges of a topic until `take` has had enough, without committing anything: the group that Kafka wants for it
 * is deleted afterwards.
 *
 * @param take is given each record, in the order of its partition; false ends the reading, and the record counts as unread
 * @returns the offset that each partition was read up to
 */
export async function readTopic(kafka: KafkaClient, topic: string, ranges: Ranges, take: (record: TopicRecord) => boolean): Promise<ReadonlyMap<number, bigint>> {
  const positions = new Map([...ranges].map(([partition, { from }]) => [partition, from]));
  const isDone = (): boolean => [...ranges].every(([partition, { to }]) => (positions.get(partition) ?? 0n) >= to);
  if (isDone()) return positions;
  const groupId = `outbox-look-${randomUUID()}`;
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 100 });
  let enough = false;
  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await new Promise<void>((resolve, reject) => {
      let timer = setTimeout(resolve, SILENCE);
      const eachBatch = async ({ batch }: { batch: KafkaBatch }): Promise<void> => {
        const range = ranges.get(batch.partition);
        if (!range || enough) return;
        clearTimeout(timer);
        timer = setTimeout(resolve, SILENCE);
        for (const record of batch.messages) {
          const offset = BigInt(record.offset);
          if (enough || offset >= range.to) break;
          // What comes before the position was sought is of no interest.
          if (offset < (positions.get(batch.partition) ?? 0n)) continue;
          enough = !take({ ...record, partition: batch.partition });
          if (!enough) positions.set(batch.partition, offset + 1n);
        }
        const behind = BigInt(batch.lastOffset()) + 1n;
        if (!enough && behind > (positions.get(batch.partition) ?? 0n)) positions.set(batch.partition, behind);
        if (!enough && !isDone()) return;
        clearTimeout(timer);
        resolve();
      };
      const start = async (): Promise<void> => {
        await consumer.run({ autoCommit: false, eachBatch });
        for (const [partition, { from }] of ranges) consumer.seek({ topic, partition, offset: String(from) });
      };
      start().catch((error: unknown) => {
        clearTimeout(timer);
        reject(error instanceof Error ? error : new Error(String(error)));
      });
    });
  } finally {
    await consumer.disconnect().catch(() => undefined);
    await withAdmin(kafka, (admin) => admin.deleteGroups([groupId])).catch(() => undefined);
  }
  return positions;
}

export async function withAdmin<T>(kafka: KafkaClient, work: (admin: KafkaAdmin) => Promise<T>): Promise<T> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}
