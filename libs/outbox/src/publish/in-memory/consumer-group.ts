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
    this.wake();
  }

  /** Starts what has something to do. */
  wake(): void {
    // A topic that came up after the group is read from its beginning: nothing of it was there to be skipped.
    for (const topic of this.options.log.names()) this.open(topic, true);
    for (const reader of this.readers.values()) void reader.run();
  }

  redeliver(record: StoredRecord): void {
    this.readers.get(`${record.topic}/${record.partition}`)?.redeliver(record);
  }

  isIdle(): boolean {
    return [...this.readers.values()].every((reader) => reader.isIdle());
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
          paused: this.options.paused,
          changed: this.options.changed,
        }),
      );
    });
  }
}
