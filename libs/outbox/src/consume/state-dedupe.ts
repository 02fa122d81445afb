import type { EntityManager } from 'typeorm';
import { AlreadyAppliedError, NoTransactionError, StateConflictError } from '../errors';
import type { AmbientTransactions } from '../transaction/ambient-transactions';
import type { TransactionRunner } from '../transaction/transaction-runner';
import type { Consumed, Dedupe, MessageClaim } from './dedupe';

/** Says whether a message's effect is there. */
export type IsApplied = (manager: EntityManager) => boolean | Promise<boolean>;

/** Recognises repeats by the business state: nothing is recorded. */
export class StateDedupe implements Dedupe {
  constructor(
    private readonly ambient: AmbientTransactions,
    private readonly transactions: TransactionRunner,
    private readonly isApplied: IsApplied,
  ) {}

  async run<T>(claim: MessageClaim, handler: () => Promise<T>): Promise<Consumed<T>> {
    try {
      const result = await this.inTransaction(async (manager) => {
        // Thrown, so that what the guard itself may have written goes with the rest.
        if (await this.isApplied(manager)) throw new GuardSaysSo();
        return handler();
      });
      return { duplicate: false, result };
    } catch (error) {
      if (error instanceof GuardSaysSo) return { duplicate: true };
      if (!(error instanceof AlreadyAppliedError)) throw error;
      await this.confirm(claim, error);
      return { duplicate: true };
    }
  }

  /** No row is also affected where the row is missing, or not there yet: that must not pass for a duplicate. */
  private async confirm({ consumer, messageId }: MessageClaim, cause: AlreadyAppliedError): Promise<void> {
    // In a transaction of its own: the first one may have read before the other copy committed.
    if (await this.inTransaction(async (manager) => this.isApplied(manager))) return;
    throw new StateConflictError(
      `${consumer}: message ${messageId} found nothing to change, and isApplied says that its effect is not there.`,
      { cause },
    );
  }

  private inTransaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    // NESTED: inside an open transaction a duplicate undoes its own part only.
    return this.transactions.run({ propagation: 'NESTED' }, () => {
      const scope = this.ambient.current();
      if (!scope) throw new NoTransactionError('The handler has no transaction.');
      return work(scope.queryRunner.manager);
    });
  }
}

class GuardSaysSo extends Error {}
