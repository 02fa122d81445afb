import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Admin, ConfigResourceTypes, Kafka, logLevel } from 'kafkajs';
import type { ReadRecord } from 'nestjs-transactional-outbox/publisher-acceptance';

export interface BrokerTopic {
  readonly partitions?: number;
  readonly maxRecordBytes?: number;
  /** Nodes that have a copy each. Default: as the broker likes. */
  readonly replicas?: readonly number[];
  readonly minInSync?: number;
}

/** A record as it lies on the topic. */
export interface RecordBytes {
  readonly partition: number;
  readonly offset: string;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  /** In the order of the wire. */
  readonly headers: readonly (readonly [name: string, value: Buffer])[];
  readonly timestamp: number;
}

/** Looks at a Kafka broker with a plain client. */
export class KafkaBroker {
  private readonly kafka: Kafka;
  private readonly admin: Admin;

  constructor(readonly brokers: string[]) {
    this.kafka = new Kafka({ clientId: 'onlooker', brokers, logLevel: logLevel.NOTHING, requestTimeout: 5_000 });
    this.admin = this.kafka.admin();
  }

  async connect(): Promise<this> {
    await this.admin.connect();
    return this;
  }

  async close(): Promise<void> {
    await this.admin.disconnect();
  }

  async createTopic({ partitions = 3, maxRecordBytes, replicas, minInSync }: BrokerTopic = {}, topic = `t-${randomUUID()}`): Promise<string> {
    const configEntries = Object.entries({ 'max.message.bytes': maxRecordBytes, 'min.insync.replicas': minInSync }).flatMap(
      ([name, value]) => (value === undefined ? [] : [{ name, value: String(value) }]),
    );
    // Each partition prefers another of the nodes as its leader.
    const placed = replicas && {
      replicaAssignment: Array.from({ length: partitions }, (_, partition) => ({
        partition,
        replicas: replicas.map((_node, n) => replicas[(n + partition) % replicas.length] ?? 0),
      })),
    };
    await this.admin.createTopics({ topics: [{ topic, ...(placed ?? { numPartitions: partitions }), configEntries }], waitForLeaders: false });
    // A topic is made in steps: known, led, and led by one who knows it. Clients that look between them give up.
    for (let tries = 1; ; tries += 1) {
      try {
        if ((await this.admin.fetchTopicOffsets(topic)).length === partitions) return topic;
      } catch (error) {
        if (tries === 100) throw error;
      }
      await sleep(100);
    }
  }

  /** Of each partition the node that leads it, and how many replicas are in sync. */
  async leaders(topic: string): Promise<{ leader: number; inSync: number }[]> {
    const { topics } = await this.admin.fetchTopicMetadata({ topics: [topic] });
    const partitions = [...(topics[0]?.partitions ?? [])].sort((a, b) => a.partitionId - b.partitionId);
    return partitions.map(({ leader, isr }) => ({ leader, inSync: isr.length }));
  }

  async configOf(topic: string, name: string): Promise<string | undefined> {
    const { resources } = await this.admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configNames: [name] }],
    });
    return resources[0]?.configEntries[0]?.configValue;
  }

  async names(): Promise<string[]> {
    return (await this.admin.listTopics()).filter((topic) => !topic.startsWith('__')).sort();
  }

  async limitRecords(topic: string, maxRecordBytes: number): Promise<void> {
    const configEntries = [{ name: 'max.message.bytes', value: String(maxRecordBytes) }];
    await this.admin.alterConfigs({ validateOnly: false, resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }] });
  }

  async deleteTopic(topic: string): Promise<void> {
    await this.admin.deleteTopics({ topics: [topic] });
  }

  /** Number of records on the topic. */
  async count(topic: string): Promise<number> {
    return (await this.admin.fetchTopicOffsets(topic)).reduce((sum, { offset }) => sum + Number(offset), 0);
  }

  /** Everything that is on the topic now. */
  async read(topic: string): Promise<ReadRecord[]> {
    return (await this.readBytes(topic)).map(({ key, value, headers, ...place }) => ({
      ...place,
      key: key === null ? null : key.toString(),
      value: value === null ? null : value.toString(),
      headers: headers.map(([name, bytes]) => [name, bytes.toString()] as const),
    }));
  }

  /** The same, as it lies there. */
  async readBytes(topic: string): Promise<RecordBytes[]> {
    const count = await this.count(topic);
    if (count === 0) return [];
    const consumer = this.kafka.consumer({ groupId: `onlooker-${randomUUID()}`, maxWaitTimeInMs: 100 });
    const records: RecordBytes[] = [];
    try {
      await consumer.connect();
      await consumer.subscribe({ topic, fromBeginning: true });
      await new Promise<void>((resolve, reject) => {
        consumer
          .run({
            eachMessage: async ({ partition, message: { offset, key, value, headers, timestamp } }) => {
              const entries = Object.entries(headers ?? {}).map(([name, bytes]) => [name, Buffer.from(bytes as Buffer)] as const);
              records.push({ partition, offset, key, value, headers: entries, timestamp: Number(timestamp) });
              if (records.length === count) resolve();
            },
          })
          .catch(reject);
      });
    } finally {
      await consumer.disconnect();
    }
    return records.sort((a, b) => a.partition - b.partition || Number(a.offset) - Number(b.offset));
  }
}
