import { createHash } from 'node:crypto';
import { type AclEntry, type Admin, type Consumer, Kafka, type KafkaMessage, logLevel } from 'kafkajs';
import { PARTITIONS, readValue, TOPICS } from './events.js';
import type { TopicRecord } from './history.js';

/** What Kafka calls a topic, among resources; kafkajs does not export these numbers to ES modules. */
const TOPIC_RESOURCE = 2;
/** Kafka's numbers for what a rule says. */
const [LITERAL, ANY_OPERATION, WRITE, DENY, ALLOW] = [3, 2, 4, 2, 3];

/** Settings of a broker whose topics may be forbidden: without rules, everything is allowed. */
export const BROKER_SETTINGS = {
  'auto.create.topics.enable': 'false',
  'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
  'allow.everyone.if.no.acl.found': 'true',
};

const NAMES = Object.values(TOPICS).map(({ name }) => name);

/** The broker of a run, seen through a plain client. */
export class ChaosBroker {
  private readonly kafka: Kafka;
  private readonly admin: Admin;
  private reader: Consumer | undefined;
  private readonly found = new Map<string, TopicRecord>();

  constructor(broker: string) {
    this.kafka = new Kafka({ clientId: 'onlooker', brokers: [broker], logLevel: logLevel.NOTHING });
    this.admin = this.kafka.admin();
  }

  async prepare(): Promise<void> {
    await this.admin.connect();
    await this.admin.createTopics({
      waitForLeaders: true,
      topics: Object.values(TOPICS).map(({ name, maxBytes }) => ({
        topic: name,
        numPartitions: PARTITIONS,
        configEntries: [{ name: 'max.message.bytes', value: String(maxBytes) }],
      })),
    });
  }

  async limit(topic: string, maxBytes: number): Promise<void> {
    await this.admin.alterConfigs({
      validateOnly: false,
      resources: [
        { type: TOPIC_RESOURCE, name: topic, configEntries: [{ name: 'max.message.bytes', value: String(maxBytes) }] },
      ],
    });
  }

  async forbidWriting(topic: string): Promise<void> {
    // Where there is one rule, what no rule allows is forbidden.
    await this.admin.createAcls({ acl: [rule(topic, ANY_OPERATION, ALLOW), rule(topic, WRITE, DENY)] });
  }

  async allowWriting(topic: string): Promise<void> {
    const { resourceType, resourceName, resourcePatternType } = rule(topic, WRITE, DENY);
    await this.admin.deleteAcls({
      filters: [{ resourceType, resourceName, resourcePatternType, operation: WRITE, permissionType: DENY }],
    });
  }

  /** Begins to read everything from the beginning of the topics. */
  async startReading(): Promise<void> {
    this.reader = this.kafka.consumer({ groupId: `onlooker-${Date.now()}`, maxWaitTimeInMs: 100 });
    await this.reader.connect();
    await this.reader.subscribe({ topics: NAMES, fromBeginning: true });
    await this.reader.run({
      autoCommit: false,
      partitionsConsumedConcurrently: PARTITIONS * NAMES.length,
      eachMessage: async ({ topic, partition, message }) => {
        const record = toRecord(topic, partition, message);
        this.found.set(`${topic}/${partition}/${record.offset}`, record);
      },
    });
  }

  /** Records that the topics hold now. */
  async count(): Promise<number> {
    let count = 0;
    for (const topic of NAMES) {
      for (const { offset } of await this.admin.fetchTopicOffsets(topic)) count += Number(offset);
    }
    return count;
  }

  /** What has been read so far, partition by partition. */
  records(): TopicRecord[] {
    return [...this.found.values()].sort(
      (a, b) => a.topic.localeCompare(b.topic) || a.partition - b.partition || a.offset - b.offset,
    );
  }

  async close(): Promise<void> {
    await this.reader?.disconnect();
    await this.admin.disconnect();
  }
}

function rule(topic: string, operation: number, permissionType: number): AclEntry {
  return {
    resourceType: TOPIC_RESOURCE,
    resourceName: topic,
    resourcePatternType: LITERAL,
    principal: 'User:*',
    host: '*',
    operation,
    permissionType,
  };
}

function toRecord(topic: string, partition: number, { offset, key, value, headers }: KafkaMessage): TopicRecord {
  const text = value === null ? null : value.toString('utf8');
  const named = Object.entries(headers ?? {}).map(([name, content]) => [name, String(content)] as const);
  const id = named.find(([name]) => name === 'id');
  return {
    topic,
    partition,
    offset: Number(offset),
    messageId: id?.[1] ?? null,
    eventId: readValue(text)?.eventId ?? null,
    key: key === null ? null : key.toString('utf8'),
    fingerprint: createHash('sha1').update(JSON.stringify([text, named])).digest('base64'),
  };
}
