import { setTimeout as sleep } from 'node:timers/promises';
import type { GroupMember } from './group-member';
import type { StoredRecord } from './topic-log';

export interface PartitionReaderOptions {
  readonly records: readonly StoredRecord[];
  readonly start: number;
  readonly redeliveryDelay: number;
  readonly member: () => GroupMember | undefined;
  readonly paused: () => boolean;
  readonly changed: () => void;
}

/** Reads one partition for one group: in order, one record at a time, a failed one again until it is taken. */
export class PartitionReader {
  private offset: number;
  private readonly again: StoredRecord[] = [];
  private running = false;

  constructor(private readonly options: PartitionReaderOptions) {
    this.offset = options.start;
  }

  /** A reader without a member has nobody to wait for, and one that is paused nothing. */
  isIdle(isPaused: boolean): boolean {
    return !this.running && (isPaused || this.next() === undefined || this.options.member() === undefined);
  }

  /** Delivers the record once more; one that was not delivered yet comes anyway. */
  redeliver(record: StoredRecord): void {
    if (record.offset < this.offset) this.again.push(record);
  }

  /** Reads on until nothing is left. Never rejects. */
  async run(): Promise<void> {
    if (this.running) return;
    this.running = true;
    for (;;) {
      const member = this.options.member();
      const record = this.next();
      if (member === undefined || record === undefined || this.options.paused()) break;
      if (await member.deliver(record)) {
        if (this.again[0] === record) this.again.shift();
        else this.offset += 1;
        // Gives timers and other partitions their turn, however fast the handler is.
        await new Promise((resolve) => setImmediate(resolve));
      } else {
        await sleep(this.options.redeliveryDelay, undefined, { signal: member.closed }).catch(() => undefined);
      }
    }
    this.running = false;
    this.options.changed();
  }

  private next(): StoredRecord | undefined {
    return this.again[0] ?? this.options.records[this.offset];
  }
}
