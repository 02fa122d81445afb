import type { PublisherFactory } from '../publisher';
import { ConsumerGroup } from './consumer-group';
import { Faults, type InMemoryFault } from './faults';
import { GroupMember } from './group-member';
import { InMemoryPublisher } from './in-memory-publisher';
import { InMemoryServer, type InMemoryServerOptions } from './in-memory-server';
import { type InMemoryTopicOptions, type RecordToStore, type StoredRecord, TopicLog } from './topic-log';

/** How topics are that are created by their first use, and more. */
export interface InMemoryBrokerOptions extends InMemoryTopicOptions {
  /** Milliseconds before a record whose handler failed is delivered again. Default: 100. */
  readonly redeliveryDelay?: number;
}

/** A record of an in-memory topic, as text. */
export interface InMemoryRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: string;
  readonly key: string | null;
  readonly value: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds since 1970, UTC. */
  readonly timestamp: number;
}

export interface InMemoryConsumerOptions {
  readonly groupId: string;
  /** Topic names, or expressions that also meet topics which are created later. */
  readonly topics: readonly (string | RegExp)[];
  /** Called for each record; when it throws, the same record comes again. */
  readonly eachMessage: (record: StoredRecord) => unknown;
  /** Called for each failed delivery. */
  readonly onError?: ((error: unknown, record: StoredRecord) => void) | undefined;
  /** Where a group starts in a topic that it never read: at its beginning, or at what comes next. Default: true. */
  readonly fromBeginning?: boolean | undefined;
}

export interface InMemoryConsumer {
  /** Ends the deliveries; resolves when the running ones are done. What was taken is not delivered to the group again. */
  close(): Promise<void>;
  /** Leaves partitions out, for the group, until they are resumed or its last consumer has closed. */
  pause(topic: string, partitions: readonly number[]): void;
  resume(topic: string, partitions: readonly number[]): void;
}

/**
 * A broker in this process, for demos and tests: topics with partitions, consumer groups with offsets, redelivery,
 * and faults on request. Keys meet the same partitions as in Kafka. Everything is forgotten with the process.
 */
export class InMemoryBroker {
  private readonly log: TopicLog;
  private readonly faults = new Faults();
  private readonly groups = new Map<string, ConsumerGroup>();
  private readonly redeliveryDelay: number;
  private waiting: (() => void)[] = [];

  constructor(options: InMemoryBrokerOptions = {}) {
    const { partitions = 3, maxRecordBytes = 1_048_576, redeliveryDelay = 100 } = options;
    this.log = new TopicLog({ partitions, maxRecordBytes });
    this.redeliveryDelay = redeliveryDelay;
  }

  /** What `OutboxModule.forRoot({ publisher })` takes. */
  publisher(): PublisherFactory {
    const { log, faults } = this;
    return () => new InMemoryPublisher({ log, faults, stored: () => this.wake() });
  }

  /** What `app.connectMicroservice({ strategy })` takes. */
  server(options: InMemoryServerOptions): InMemoryServer {
    return new InMemoryServer(this, options);
  }

  /** Creates a topic ahead of its first use, where it should differ from the default. */
  createTopic(topic: string, options: InMemoryTopicOptions = {}): void {
    this.log.create(topic, options);
    this.wake();
  }

  /** Stores a record, past all faults. */
  produce(topic: string, record: RecordToStore): InMemoryRecord {
    const stored = this.log.append(topic, record);
    this.wake();
    return asText(stored);
  }

  /** All records of a topic, partition by partition. */
  records(topic: string): InMemoryRecord[] {
    return this.log.names().includes(topic) ? this.log.partitions(topic).flat().map(asText) : [];
  }

  /** Joins a group: each record goes to one member, each partition in order and one record at a time. */
  consume(options: InMemoryConsumerOptions): InMemoryConsumer {
    const { topics, eachMessage, onError, fromBeginning = true } = options;
    const member = new GroupMember({ topics, deliver: eachMessage, failed: onError });
    const group = this.group(options.groupId);
    group.join(member, fromBeginning);
    return {
      close: async () => {
        group.leave(member);
        await member.close();
      },
      pause: (topic, partitions) => group.pause(topic, partitions),
      resume: (topic, partitions) => group.resume(topic, partitions),
    };
  }

  /** Delivers records again to every group that has had them; returns how many records were meant. */
  redeliver(topic: string, which: (record: InMemoryRecord) => boolean): number {
    const records = this.log.partitions(topic).flat().filter((record) => which(asText(record)));
    for (const record of records) {
      for (const group of this.groups.values()) group.redeliver(record);
    }
    this.wake();
    return records.length;
  }

  /**
   * Puts a fault in force until `heal`. In an outage publishers get no answer and consumers no records; a function
   * decides for each published record.
   */
  fail(fault: 'outage' | InMemoryFault): void {
    this.faults.fail(fault);
  }

  /** Refuses the messages with these ids until `heal`. */
  refuse(...messageIds: string[]): void {
    this.faults.refuse(messageIds);
  }

  /** Stores the next batches that are published, but loses the answers. */
  loseAnswers(batches = 1): void {
    this.faults.loseAnswers(batches);
  }

  /** Ends all faults. */
  heal(): void {
    this.faults.heal();
    this.wake();
  }

  /** Resolves when every group that has members has taken everything, and no handler runs. */
  async idle(): Promise<void> {
    while (![...this.groups.values()].every((group) => group.isIdle())) {
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
  }

  private group(id: string): ConsumerGroup {
    let group = this.groups.get(id);
    if (group === undefined) {
      group = new ConsumerGroup({
        log: this.log,
        redeliveryDelay: this.redeliveryDelay,
        paused: () => this.faults.outage,
        changed: () => this.changed(),
      });
      this.groups.set(id, group);
    }
    return group;
  }

  private wake(): void {
    for (const group of this.groups.values()) group.wake();
    this.changed();
  }

  private changed(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }
}

function asText(record: StoredRecord): InMemoryRecord {
  const { topic, partition, offset, key, value, headers, timestamp } = record;
  return {
    topic,
    partition,
    offset: String(offset),
    key: key === null ? null : key.toString(),
    value: value === null ? null : value.toString(),
    headers: Object.fromEntries(Object.entries(headers).map(([name, bytes]) => [name, bytes.toString()] as const)),
    timestamp,
  };
}
