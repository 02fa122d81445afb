import type { OutboxMessage } from '../event/message';

/** Runs when the transaction's outcome is known, outside of it. */
export type TransactionHook = () => unknown;

/** How much had been collected at some point. */
export interface Mark {
  readonly messages: number;
  readonly beforeFlush: number;
  readonly afterCommit: number;
}

export const NOTHING_COLLECTED: Mark = { messages: 0, beforeFlush: 0, afterCommit: 0 };

/** What a transaction collects for its end. */
export class Collected {
  private readonly messages: OutboxMessage[] = [];
  private readonly beforeFlush: (() => void)[] = [];
  private readonly afterCommit: TransactionHook[] = [];
  private readonly afterRollback: TransactionHook[] = [];

  get mark(): Mark {
    return { messages: this.messages.length, beforeFlush: this.beforeFlush.length, afterCommit: this.afterCommit.length };
  }

  /** Forgets what was collected later. */
  goBackTo(mark: Mark): void {
    this.messages.length = mark.messages;
    this.beforeFlush.length = mark.beforeFlush;
    this.afterCommit.length = mark.afterCommit;
  }

  add(messages: readonly OutboxMessage[]): void {
    this.messages.push(...messages);
  }

  onFlush(hook: () => void): void {
    this.beforeFlush.push(hook);
  }

  onCommit(hook: TransactionHook): void {
    this.afterCommit.push(hook);
  }

  onCommitFirst(hook: TransactionHook): void {
    this.afterCommit.unshift(hook);
  }

  onRollback(hook: TransactionHook): void {
    this.afterRollback.push(hook);
  }

  /** Writes the messages, and those that are emitted while that is done. */
  async flush(write: (messages: readonly OutboxMessage[]) => Promise<void>): Promise<void> {
    while (this.beforeFlush.length > 0 || this.messages.length > 0) {
      for (const hook of this.beforeFlush.splice(0)) hook();
      const messages = this.messages.splice(0);
      if (messages.length > 0) await write(messages);
    }
  }

  /** The hooks of the outcome, once. */
  takeHooks(outcome: 'committed' | 'rolled-back'): readonly TransactionHook[] {
    return (outcome === 'committed' ? this.afterCommit : this.afterRollback).splice(0);
  }
}
