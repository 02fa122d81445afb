import { AsyncLocalStorage } from 'node:async_hooks';
import { Logger } from '@nestjs/common';
import type { DataSource, EntityManager, QueryRunner } from 'typeorm';
import { NoTransactionError, TransactionClosedError } from '../errors';
import { Branch } from './branch';
import type { TransactionHook } from './collected';
import type { Flush, ScopeOptions } from './scope-options';
import { SerialQueryRunners } from './serial-query-runner';
import type { IsolationLevel } from './transaction-options';
import { TransactionScope } from './transaction-scope';

type Run = (manager: EntityManager) => Promise<unknown>;

export interface AmbientTransactionsOptions {
  readonly flush: Flush;
  /** Called after each commit that wrote messages. */
  readonly onWritten: () => void;
}

/**
 * The transactions of one data source, each found by the asynchronous context of its code.
 *
 * Everything in TypeORM that is not given a query runner asks the data source for one: repositories, managers, query
 * builders, `query`, `transaction`. So one property of the instance makes all of them join: inside a transaction,
 * `createQueryRunner` answers with the transaction's own.
 */
export class AmbientTransactions {
  private readonly logger = new Logger('Outbox');
  private readonly storage = new AsyncLocalStorage<Branch | undefined>();
  private readonly scopes = new WeakMap<QueryRunner, TransactionScope>();
  private readonly original: DataSource['createQueryRunner'];
  private readonly create: DataSource['createQueryRunner'];
  private readonly views: SerialQueryRunners | undefined;
  /** True where the database has one connection only. */
  readonly serial: boolean;

  constructor(
    readonly dataSource: DataSource,
    private readonly options: AmbientTransactionsOptions,
  ) {
    this.original = dataSource.createQueryRunner;
    const create = this.original.bind(dataSource);
    this.serial = /sqlite|sqljs/.test(dataSource.options.type);
    const views = this.serial ? new SerialQueryRunners(dataSource, create) : undefined;
    this.views = views;
    this.create = views ? () => views.create() : create;
  }

  /** From now on the data source's work inside a transaction is part of it. */
  join(): void {
    this.dataSource.createQueryRunner = (mode) => this.current()?.queryRunner ?? this.create(mode);
    this.nest(this.dataSource.manager);
  }

  /** Gives the data source back as it was. */
  leave(): void {
    this.dataSource.createQueryRunner = this.original;
    Reflect.deleteProperty(this.dataSource.manager, 'transaction');
  }

  /**
   * The transaction that the calling code is in.
   *
   * @throws TransactionClosedError when it has ended
   */
  current(): TransactionScope | undefined {
    const branch = this.storage.getStore();
    if (!branch) return undefined;
    if (branch.isAlive) return branch.scope;
    throw new TransactionClosedError(
      'This work was started inside a transaction and goes on after its end. Await it inside the transactional ' +
        'method, or start it outside.',
    );
  }

  /**
   * The transaction of an explicit manager, whoever began it.
   *
   * @throws NoTransactionError when the manager is in none
   */
  scopeOf(manager: EntityManager): TransactionScope {
    const queryRunner = manager.queryRunner ?? this.current()?.queryRunner;
    if (!queryRunner?.isTransactionActive) {
      throw new NoTransactionError('The given manager is not in a transaction.');
    }
    return this.scopeOn(queryRunner);
  }

  /** The transaction that a query runner is in. */
  scopeOn(queryRunner: QueryRunner): TransactionScope {
    return this.scopes.get(queryRunner) ?? this.adopt(queryRunner);
  }

  /** A query runner of its own, even inside a transaction. */
  createQueryRunner(): QueryRunner {
    return this.create('master');
  }

  /** Watches a transaction that the caller has begun and will end inside {@link finish}. */
  open(queryRunner: QueryRunner, isolation: IsolationLevel | undefined): TransactionScope {
    this.nest(queryRunner.manager);
    return this.watch(queryRunner, { isolation, isOwned: true });
  }

  /** Runs the transactional work itself. */
  inside<T>(scope: TransactionScope, work: () => Promise<T>): Promise<T> {
    return this.runIn(Branch.root(scope), work);
  }

  /** Says that a method begins that belongs to the transaction around it; the returned function, that it has ended. */
  enter(): () => void {
    return this.storage.getStore()?.enter() ?? (() => undefined);
  }

  /** Runs what ends the transaction; from here on nobody else may send statements. */
  finish<T>(scope: TransactionScope, work: () => T): T {
    scope.close();
    return this.storage.run(Branch.finishing(scope), work);
  }

  /** Runs work in a savepoint of the open transaction. */
  async savepoint<T>(open: TransactionScope, isolation: IsolationLevel | undefined, work: () => Promise<T>): Promise<T> {
    open.assertIsolation(isolation);
    const leave = this.enter();
    try {
      return await this.branch(({ depth }) => this.inSavepoint(open.queryRunner, `outbox_${depth}`, work));
    } finally {
      leave();
    }
  }

  /** Its name is its own: TypeORM takes the number of open ones, and goes back to the wrong one when they overlap. */
  private async inSavepoint<T>(queryRunner: QueryRunner, name: string, work: () => Promise<T>): Promise<T> {
    await queryRunner.query(`SAVEPOINT ${name}`);
    try {
      // A branch of its own, which is over before the savepoint ends: what it left running cannot write behind it.
      const result = await this.branch(work);
      await queryRunner.query(`RELEASE SAVEPOINT ${name}`);
      return result;
    } catch (error) {
      // When it fails, the scope knows, and will not commit; the first error is the one to report.
      await queryRunner.query(`ROLLBACK TO SAVEPOINT ${name}`).catch(() => undefined);
      throw error;
    }
  }

  private async branch<T>(work: (branch: Branch) => Promise<T>): Promise<T> {
    const branch = this.storage.getStore()?.child();
    if (!branch) throw new NoTransactionError('A savepoint needs an open transaction.');
    try {
      return await this.runIn(branch, () => work(branch));
    } finally {
      branch.ended = true;
    }
  }

  private async runIn<T>(branch: Branch, work: () => Promise<T>): Promise<T> {
    const result = await this.storage.run(branch, work);
    branch.assertComplete();
    return result;
  }

  outside<T>(work: () => T): T {
    return this.storage.run(undefined, work);
  }

  /** Runs the hooks of the outcome. A hook that fails is logged: the outcome stands. */
  async runHooks(hooks: readonly TransactionHook[]): Promise<void> {
    for (const hook of hooks) {
      try {
        await this.outside(hook);
      } catch (error) {
        this.logger.error('A transaction hook failed.', error instanceof Error ? error.stack : error);
      }
    }
  }

  /** Makes `manager.transaction(…)` inside a transaction a savepoint that its branch alone may use. */
  private nest(manager: EntityManager): void {
    const original = manager.transaction.bind(manager) as (...args: unknown[]) => Promise<unknown>;
    const transaction = async (first: Run | IsolationLevel | undefined, second?: Run): Promise<unknown> => {
      const open = this.current();
      const [run, isolation] = typeof first === 'function' ? [first, undefined] : [second, first];
      if (!run) return original(first, second);
      if (!open) return this.views ? this.views.transaction(original, isolation, run) : original(first, second);
      return this.savepoint(open, isolation, () => run(open.queryRunner.manager));
    };
    manager.transaction = transaction as EntityManager['transaction'];
  }

  private adopt(queryRunner: QueryRunner): TransactionScope {
    if (!this.isInTransaction(queryRunner)) {
      throw new NoTransactionError('The transaction of the given manager has ended, though TypeORM does not know it.');
    }
    return this.watch(queryRunner, { isolation: undefined, isOwned: false }, (scope) => {
      void this.runHooks(scope.takeHooks());
    });
  }

  private watch(
    queryRunner: QueryRunner,
    options: Pick<ScopeOptions, 'isolation' | 'isOwned'>,
    onEnd?: (scope: TransactionScope) => void,
  ): TransactionScope {
    const scope = new TransactionScope(queryRunner, {
      ...options,
      databaseType: this.dataSource.options.type,
      isInTransaction: () => this.isInTransaction(queryRunner),
      flush: this.options.flush,
      caller: () => this.branchOf(queryRunner),
      onEnd: (ended) => {
        this.scopes.delete(queryRunner);
        if (ended.isCommitted && ended.writtenMessages > 0) this.outside(this.options.onWritten);
        onEnd?.(ended);
      },
    });
    this.scopes.set(queryRunner, scope);
    return scope;
  }

  /**
   * What the driver knows: better-sqlite3 of its one connection, pg (8.23 and later) from the last answer. MySQL's
   * results tell by themselves.
   */
  private isInTransaction(queryRunner: QueryRunner): boolean {
    const connection: unknown = Reflect.get(this.serial ? this.dataSource.driver : queryRunner, 'databaseConnection');
    if (typeof connection !== 'object' || connection === null) return true;
    if (this.serial) return Reflect.get(connection, 'inTransaction') !== false;
    const status: unknown = Reflect.get(connection, 'getTransactionStatus');
    return typeof status !== 'function' || status.call(connection) !== 'I';
  }

  private branchOf(queryRunner: QueryRunner): Branch | undefined {
    const branch = this.storage.getStore();
    return branch?.scope.queryRunner === queryRunner ? branch : undefined;
  }
}
