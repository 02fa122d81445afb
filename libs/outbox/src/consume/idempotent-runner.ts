import type { AmbientTransactions } from '../transaction/ambient-transactions';
import type { TransactionRunner } from '../transaction/transaction-runner';
import type { OutboxStore } from '../store/outbox-store';
import { NoTransactionError } from '../errors';

/** What became of a message: handled now, or recognised as handled before. */
export type Consumed<T> = { readonly duplicate: false; readonly result: T } | { readonly duplicate: true };

/** Runs handlers once for each message. */
export class IdempotentRunner {
  constructor(
    private readonly ambient: AmbientTransactions,
    private readonly transactions: TransactionRunner,
    private readonly store: OutboxStore,
  ) {}

  /**
   * Runs `handler` in a transaction that first records the message for the consumer. When it rejects, the record is
   * undone with everything else, and the message can be tried again.
   */
  run<T>(consumer: string, messageId: string, handler: () => Promise<T>): Promise<Consumed<T>> {
    return this.transactions.run({}, async () => {
      const scope = this.ambient.current();
      if (!scope) throw new NoTransactionError('The handler has no transaction.');
      const first = await this.store.consume(scope.queryRunner, consumer, messageId);
      if (!first) return { duplicate: true };
      return { duplicate: false, result: await handler() };
    });
  }
}
