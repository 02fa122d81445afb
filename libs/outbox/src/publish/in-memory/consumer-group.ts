import type { GroupMember } from './group-member';
import { PartitionReader } from './partition-reader';
import type { StoredRecord, TopicLog } from './topic-log';

export interface ConsumerGroupOptions {
  readonly log: TopicLog;
  /** Milliseconds before a failed delivery is repeated. */
  readonly redeliveryDelay: number;
  /** While it says true nothing is delivered. */
  readonly paused: () => boolean;
  readonly changed: () => void;
}

/** The consumers of one group id. Its offsets outlive its members. */
export class ConsumerGroup {
  private readonly members = new Set<GroupMember>();
  private readonly readers = new Map<string, PartitionReader>();
  /** Partitions that a member has asked to leave out, as topic/partition. */
  private readonly paused = new Set<string>();

  constructor(private readonly options: ConsumerGroupOptions) {}

  join(member: GroupMember, fromBeginning: boolean): void {
    this.members.add(member);
    for (const topic of member.topics) {
      if (typeof topic === 'string') this.open(topic, fromBeginning);
    }
    for (const topic of this.options.log.names()) this.open(topic, fromBeginning);
    this.wake();
  }

  leave(member: GroupMember): void {
    this.members.delete(member);
    // As in Kafka, a pause ends with its consumer.
    if (this.members.size === 0) this.paused.clear();
    this.wake();
  }

  /** Starts what has something to do. */
  wake(): void {
    // A topic that came up after the group is read from its beginning: nothing of it was there to be skipped.
    for (const topic of this.options.log.names()) this.open(topic, true);
    for (const reader of this.readers.values()) void reader.run();
  }

  pause(topic: string, partitions: readonly number[]): void {
    for (const partition of partitions) this.paused.add(`${topic}/${partition}`);
    this.options.changed();
  }

  resume(topic: string, partitions: readonly number[]): void {
    for (const partition of partitions) this.paused.delete(`${topic}/${partition}`);
    this.wake();
  }

  redeliver(record: StoredRecord): void {
    this.readers.get(`${record.topic}/${record.partition}`)?.redeliver(record);
  }

  isIdle(): boolean {
    return [...this.readers].every(([name, reader]) => reader.isIdle(this.paused.has(name)));
  }

  /** Spreads partitions over the members that read the topic. */
  memberFor(topic: string, partition: number): GroupMember | undefined {
    const readers = [...this.members].filter((member) => member.reads(topic));
    return readers[partition % readers.length];
  }

  private open(topic: string, fromBeginning: boolean): void {
    if (![...this.members].some((member) => member.reads(topic))) return;
    this.options.log.partitions(topic).forEach((records, partition) => {
      const name = `${topic}/${partition}`;
      if (this.readers.has(name)) return;
      this.readers.set(
        name,
        new PartitionReader({
          records,
          start: fromBeginning ? 0 : records.length,
          redeliveryDelay: this.options.redeliveryDelay,
          member: () => this.memberFor(topic, partition),
          paused: () => this.options.paused() || this.paused.has(name),
          changed: this.options.changed,
        }),
      );
    });
  }
}
