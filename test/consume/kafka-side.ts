import { randomUUID } from 'node:crypto';
import { type KafkaOptions, Transport } from '@nestjs/microservices';
import { type Admin, Kafka, logLevel, type Message, Partitioners, type Producer } from 'kafkajs';

/** Short enough for tests: kafkajs waits 300 ms and more by default. */
const retry = { initialRetryTime: 50, maxRetryTime: 300, retries: 5 };

export interface ReceivedRecord {
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** The Kafka around an app: topics of one's own, a producer that sends anything, and a look at what arrives. */
export class KafkaSide {
  readonly brokers = (process.env['OUTBOX_KAFKA_BROKERS'] ?? '').split(',');
  private readonly kafka = new Kafka({ clientId: 'side', brokers: this.brokers, logLevel: logLevel.NOTHING });
  private readonly admin: Admin = this.kafka.admin();
  private readonly producer: Producer = this.kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });

  async connect(): Promise<this> {
    await Promise.all([this.admin.connect(), this.producer.connect()]);
    return this;
  }

  async close(): Promise<void> {
    await Promise.all([this.admin.disconnect(), this.producer.disconnect()]);
  }

  async createTopics(topics: readonly string[], partitions = 1): Promise<void> {
    await this.admin.createTopics({
      topics: topics.map((topic) => ({ topic, numPartitions: partitions })),
      waitForLeaders: true,
    });
  }

  async send(topic: string, ...messages: Message[]): Promise<void> {
    await this.producer.send({ topic, messages });
  }

  /** Whether the group has committed everything that is on the topic. */
  async isDone(groupId: string, topic: string): Promise<boolean> {
    const [ends, committed] = await Promise.all([
      this.admin.fetchTopicOffsets(topic),
      this.admin.fetchOffsets({ groupId, topics: [topic] }),
    ]);
    const offsets = new Map(committed[0]?.partitions.map(({ partition, offset }) => [partition, Number(offset)]));
    return ends.every(({ partition, high }) => Math.max(0, offsets.get(partition) ?? 0) >= Number(high));
  }

  async resetToBeginning(groupId: string, topic: string): Promise<void> {
    await this.admin.resetOffsets({ groupId, topic, earliest: true });
  }

  /** How many records are on the topic now. */
  async count(topic: string): Promise<number> {
    return (await this.admin.fetchTopicOffsets(topic)).reduce((sum, { high, low }) => sum + Number(high) - Number(low), 0);
  }

  /** Everything that is on the topic now. */
  async read(topic: string): Promise<ReceivedRecord[]> {
    const ends = await this.admin.fetchTopicOffsets(topic);
    const count = ends.reduce((sum, { high }) => sum + Number(high), 0);
    const records: ReceivedRecord[] = [];
    if (count === 0) return records;
    const consumer = this.kafka.consumer({ groupId: `side-${randomUUID()}`, maxWaitTimeInMs: 50 });
    try {
      await consumer.connect();
      await consumer.subscribe({ topic, fromBeginning: true });
      await new Promise<void>((resolve, reject) => {
        const eachMessage = async ({ message: { key, value, headers } }: { message: Message }): Promise<void> => {
          const texts = Object.entries(headers ?? {}).map(([name, text]) => [name, String(text)]);
          records.push({ key: key as Buffer | null, value, headers: Object.fromEntries(texts) as Record<string, string> } as ReceivedRecord);
          if (records.length === count) resolve();
        };
        consumer.run({ eachMessage }).catch(reject);
      });
    } finally {
      await consumer.disconnect();
    }
    return records;
  }

  /** The options of a Nest microservice that reads for the group. */
  server(groupId: string, options: KafkaOptions['options'] = {}): KafkaOptions {
    return {
      transport: Transport.KAFKA,
      options: {
        postfixId: '',
        subscribe: { fromBeginning: true },
        producer: { createPartitioner: Partitioners.DefaultPartitioner },
        ...options,
        client: { clientId: groupId, brokers: this.brokers, logLevel: logLevel.NOTHING, retry, ...options.client },
        consumer: { groupId, maxWaitTimeInMs: 50, heartbeatInterval: 500, sessionTimeout: 6000, retry, ...options.consumer },
      },
    };
  }
}
