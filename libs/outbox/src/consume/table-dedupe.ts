import { NoTransactionError } from '../errors';
import type { Patience, Sql } from '../store/dialect';
import { gaveWay } from '../store/message-in-progress';
import type { OutboxStore } from '../store/outbox-store';
import type { AmbientTransactions } from '../transaction/ambient-transactions';
import type { TransactionRunner } from '../transaction/transaction-runner';
import type { Consumed, Dedupe, MessageClaim } from './dedupe';

/** How often a copy queues up again; each time one of those that wait gets its turn. */
const MAX_ROUNDS = 20;

/** Recognises repeats by a row that commits together with the handler's effects. */
export class TableDedupe implements Dedupe {
  constructor(
    private readonly ambient: AmbientTransactions,
    private readonly transactions: TransactionRunner,
    private readonly store: OutboxStore,
  ) {}

  run<T>({ consumer, messageId, concurrentCopies }: MessageClaim, handler: () => Promise<T>): Promise<Consumed<T>> {
    return this.inTransaction<Consumed<T>>(async (sql) => {
      const first = await this.store.consume(sql, consumer, messageId, concurrentCopies);
      return first ? { duplicate: false, result: await handler() } : { duplicate: true };
    });
  }

  /** The same for several different messages in one transaction. The handler is told which are new, if any are. */
  runBatch(
    consumer: string,
    messageIds: readonly string[],
    concurrentCopies: Patience,
    handler: (fresh: ReadonlySet<string>) => Promise<unknown>,
  ): Promise<ReadonlySet<string>> {
    return this.inTransaction(async (sql) => {
      const fresh = await this.store.consumeBatch(sql, consumer, messageIds, concurrentCopies);
      if (fresh.size > 0) await handler(fresh);
      return fresh;
    });
  }

  private inTransaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.whileGivingWay(() =>
      this.transactions.run(async () => {
        const scope = this.ambient.current();
        if (!scope) throw new NoTransactionError('The handler has no transaction.');
        return work(scope.queryRunner);
      }),
    );
  }

  /**
   * When a first copy rolls back, InnoDB hands its lock to all who wait for it, and they deadlock. Nothing was done in
   * their transactions yet, so they just queue up again; inside an open transaction that is not ours to do.
   */
  private async whileGivingWay<T>(attempt: () => Promise<T>): Promise<T> {
    const isOwn = this.ambient.current() === undefined;
    for (let round = 1; ; round++) {
      try {
        return await attempt();
      } catch (error) {
        if (!isOwn || !gaveWay(error) || round === MAX_ROUNDS) throw error;
      }
    }
  }
}
