import type { StoredRecord } from './topic-log';

export interface GroupMemberOptions {
  readonly topics: readonly (string | RegExp)[];
  readonly deliver: (record: StoredRecord) => unknown;
  readonly failed?: ((error: unknown, record: StoredRecord) => void) | undefined;
}

/** One consumer of a group. */
export class GroupMember {
  readonly topics: readonly (string | RegExp)[];
  private readonly closing = new AbortController();
  private readonly running = new Set<Promise<boolean>>();

  constructor(private readonly options: GroupMemberOptions) {
    this.topics = options.topics;
  }

  get closed(): AbortSignal {
    return this.closing.signal;
  }

  reads(topic: string): boolean {
    return this.topics.some((name) => (typeof name === 'string' ? name === topic : topic.search(name) !== -1));
  }

  /** Whether the handler took the record. Never rejects. */
  async deliver(record: StoredRecord): Promise<boolean> {
    const delivery = this.call(record);
    this.running.add(delivery);
    try {
      return await delivery;
    } finally {
      this.running.delete(delivery);
    }
  }

  /** Resolves when no delivery is running any more. */
  async close(): Promise<void> {
    this.closing.abort();
    await Promise.all(this.running);
  }

  private async call(record: StoredRecord): Promise<boolean> {
    try {
      await this.options.deliver(record);
      return true;
    } catch (error) {
      this.options.failed?.(error, record);
      return false;
    }
  }
}
