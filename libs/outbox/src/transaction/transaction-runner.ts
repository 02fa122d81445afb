import { Logger } from '@nestjs/common';
import { IsolationConflictError, NoTransactionError, SqliteNestedTransactionError } from '../errors';
import type { AmbientTransactions } from './ambient-transactions';
import type { TransactionOptions } from './transaction-options';
import type { TransactionScope } from './transaction-scope';

/** Runs work in transactions, by the rules of {@link TransactionOptions.propagation}. */
export class TransactionRunner {
  private readonly logger = new Logger('Outbox');

  constructor(private readonly ambient: AmbientTransactions) {}

  /**
   * Runs `work` in a transaction: commits when it resolves, rolls back when it rejects.
   *
   * @throws TransactionDoomedError when the database has undone the transaction though the work succeeded
   * @throws NoTransactionError for MANDATORY without, and NEVER with, an open transaction
   * @throws IsolationConflictError
   */
  async run<T>(options: TransactionOptions, work: () => Promise<T>): Promise<T> {
    const open = this.ambient.current();
    switch (options.propagation ?? 'REQUIRED') {
      case 'REQUIRED':
        return open ? this.joinOpen(open, options, work) : this.begin(options, work);
      case 'REQUIRES_NEW':
        this.assertSecondConnection(open);
        return this.begin(options, work);
      case 'NESTED':
        return open ? this.savepoint(open, options, work) : this.begin(options, work);
      case 'MANDATORY':
        if (!open) throw new NoTransactionError('Propagation MANDATORY asks for an open transaction.');
        return this.joinOpen(open, options, work);
      case 'SUPPORTS':
        return open ? this.joinOpen(open, options, work) : work();
      case 'NOT_SUPPORTED':
        this.assertSecondConnection(open);
        return this.ambient.outside(work);
      case 'NEVER':
        if (open) throw new NoTransactionError('Propagation NEVER does not allow an open transaction.');
        return work();
    }
  }

  private async begin<T>(options: TransactionOptions, work: () => Promise<T>): Promise<T> {
    const queryRunner = this.ambient.createQueryRunner();
    const release = queryRunner.release.bind(queryRunner);
    // Whoever is given the transaction's query runner may release it, as their own; only its owner really does.
    queryRunner.release = () => Promise.resolve();
    let scope: TransactionScope;
    try {
      await queryRunner.startTransaction(options.isolation);
      scope = this.ambient.open(queryRunner, options.isolation);
    } catch (error) {
      await release();
      throw error;
    }
    try {
      return await this.complete(scope, work);
    } finally {
      await release();
      await this.ambient.runHooks(scope.takeHooks());
    }
  }

  private async complete<T>(scope: TransactionScope, work: () => Promise<T>): Promise<T> {
    try {
      const result = await this.ambient.inside(scope, work);
      await this.ambient.finish(scope, () => scope.queryRunner.commitTransaction());
      return result;
    } catch (error) {
      await this.ambient.finish(scope, () => this.rollBack(scope));
      throw error;
    }
  }

  private async rollBack(scope: TransactionScope): Promise<void> {
    try {
      if (scope.queryRunner.isTransactionActive) await scope.queryRunner.rollbackTransaction();
    } catch (error) {
      // A connection that cannot roll back is broken, and then the database rolls back by itself.
      this.logger.warn(`ROLLBACK failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  private async joinOpen<T>(open: TransactionScope, options: TransactionOptions, work: () => Promise<T>): Promise<T> {
    this.assertIsolation(open, options);
    return work();
  }

  private async savepoint<T>(open: TransactionScope, options: TransactionOptions, work: () => Promise<T>): Promise<T> {
    this.assertIsolation(open, options);
    await open.queryRunner.startTransaction();
    try {
      const result = await work();
      await open.queryRunner.commitTransaction();
      return result;
    } catch (error) {
      await open.queryRunner.rollbackTransaction();
      throw error;
    }
  }

  private assertIsolation(open: TransactionScope, options: TransactionOptions): void {
    if (options.isolation && options.isolation !== open.isolation) {
      throw new IsolationConflictError(
        `The open transaction runs at ${open.isolation ?? 'the default isolation level'}, not at ${options.isolation}.`,
      );
    }
  }

  private assertSecondConnection(open: TransactionScope | undefined): void {
    if (open && this.ambient.serial) {
      throw new SqliteNestedTransactionError(
        'SQLite has one connection: work outside the open transaction would wait for itself.',
      );
    }
  }
}
