import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { NoTransactionError, SqliteNestedTransactionError, TransactionDoomedError } from '../errors';
import type { AmbientTransactions } from './ambient-transactions';
import { isConflict } from './failure-effect';
import type { TransactionOptions } from './transaction-options';
import type { TransactionHook } from './collected';
import type { TransactionScope } from './transaction-scope';

/** Longest pause between two runs, in milliseconds, before it is spread. */
const MAX_RETRY_PAUSE = 500;

/** Runs work in transactions, by the rules of {@link TransactionOptions.propagation}. */
export class TransactionRunner {
  private readonly logger = new Logger('Outbox');

  constructor(private readonly ambient: AmbientTransactions) {}

  /**
   * Runs `work` in a transaction: commits when it resolves, rolls back when it rejects.
   *
   * @throws TransactionDoomedError when the database has undone the transaction though the work succeeded
   * @throws NoTransactionError for MANDATORY without, and NEVER with, an open transaction
   * @throws IsolationConflictError, SqliteNestedTransactionError
   */
  run<T>(work: () => Promise<T>): Promise<T>;
  run<T>(options: TransactionOptions, work: () => Promise<T>): Promise<T>;
  run<T>(first: TransactionOptions | (() => Promise<T>), second?: () => Promise<T>): Promise<T> {
    return typeof first === 'function' ? this.propagate({}, first) : this.propagate(first, second as () => Promise<T>);
  }

  private async propagate<T>(options: TransactionOptions, work: () => Promise<T>): Promise<T> {
    const open = this.ambient.current();
    switch (options.propagation ?? 'REQUIRED') {
      case 'REQUIRED':
        return open ? this.join(open, options, work) : this.begin(options, work);
      case 'REQUIRES_NEW':
        this.assertSecondConnection(open);
        return this.begin(options, work);
      case 'NESTED':
        return open ? this.ambient.savepoint(open, options.isolation, work) : this.begin(options, work);
      case 'MANDATORY':
        if (!open) throw new NoTransactionError('Propagation MANDATORY asks for an open transaction.');
        return this.join(open, options, work);
      case 'SUPPORTS':
        return open ? this.join(open, options, work) : work();
      case 'NOT_SUPPORTED':
        this.assertSecondConnection(open);
        return this.ambient.outside(work);
      case 'NEVER':
        if (open) throw new NoTransactionError('Propagation NEVER does not allow an open transaction.');
        return work();
    }
  }

  /**
   * Runs `hook` after the current transaction has committed, outside of it. When it fails, that is logged and nothing
   * else: the commit stands. It does not run when the transaction, or the savepoint that it was set in, is undone.
   *
   * @throws NoTransactionError outside a transaction
   */
  afterCommit(hook: TransactionHook): void {
    this.open().onCommit(hook);
  }

  /**
   * Runs `hook` after the current transaction has rolled back, outside of it.
   *
   * @throws NoTransactionError outside a transaction
   */
  afterRollback(hook: TransactionHook): void {
    this.open().onRollback(hook);
  }

  private open(): TransactionScope {
    const open = this.ambient.current();
    if (!open) throw new NoTransactionError('A transaction hook needs an open transaction.');
    return open;
  }

  private async begin<T>(options: TransactionOptions, work: () => Promise<T>): Promise<T> {
    for (let retry = 0; ; retry++) {
      try {
        return await this.once(options, work);
      } catch (error) {
        if (retry >= (options.retries ?? 0) || !isConflict(error)) throw error;
        await setTimeout(Math.min(10 * 2 ** retry, MAX_RETRY_PAUSE) * (0.5 + Math.random()));
      }
    }
  }

  private async once<T>(options: TransactionOptions, work: () => Promise<T>): Promise<T> {
    const queryRunner = this.ambient.createQueryRunner();
    const release = queryRunner.release.bind(queryRunner);
    // Whoever is given the transaction's query runner may release it, as their own; only its owner really does.
    queryRunner.release = () => Promise.resolve();
    Reflect.set(queryRunner, Symbol.asyncDispose, () => Promise.resolve());
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
      await this.ambient.finish(scope, () => this.commit(scope));
      return result;
    } catch (error) {
      await this.ambient.finish(scope, () => this.rollBack(scope));
      throw error;
    }
  }

  private async commit(scope: TransactionScope): Promise<void> {
    if (scope.hasEnded) {
      // By hand, and COMMIT AND CHAIN has begun another one.
      await this.rollBack(scope);
      if (scope.isCommitted) return;
      throw new TransactionDoomedError('The transaction was rolled back by hand.');
    }
    await scope.queryRunner.commitTransaction();
    if (!scope.isCommitted) {
      throw new TransactionDoomedError('A transaction that was begun by hand inside this one was left open.');
    }
  }

  private async rollBack(scope: TransactionScope): Promise<void> {
    const { queryRunner } = scope;
    try {
      // TypeORM counts savepoints; one that could not be ended, or is answered just now, would turn this into
      // ROLLBACK TO SAVEPOINT, and leave the transaction open for the next user of the connection.
      while (queryRunner.isTransactionActive) {
        Reflect.set(queryRunner, 'transactionDepth', 1);
        await queryRunner.rollbackTransaction();
      }
    } catch (error) {
      if (scope.hasEnded) return;
      // A connection that cannot roll back is broken, and then the database rolls back by itself.
      this.logger.warn(`ROLLBACK failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  private async join<T>(open: TransactionScope, options: TransactionOptions, work: () => Promise<T>): Promise<T> {
    open.assertIsolation(options.isolation);
    const leave = this.ambient.enter();
    try {
      return await work();
    } finally {
      leave();
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
