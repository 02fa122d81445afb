import { AsyncLocalStorage } from 'node:async_hooks';
import { Logger } from '@nestjs/common';
import type { DataSource, EntityManager, QueryRunner } from 'typeorm';
import { NoTransactionError, TransactionClosedError } from '../errors';
import { SerialQueryRunners } from './serial-query-runner';
import type { IsolationLevel } from './transaction-options';
import { type Flush, type TransactionHook, TransactionScope } from './transaction-scope';

interface Ambience {
  readonly scope: TransactionScope;
  /** True for what commits or rolls back, subscribers included; false for what the user's code does. */
  readonly finishing: boolean;
}

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
  private readonly storage = new AsyncLocalStorage<Ambience | undefined>();
  private readonly scopes = new WeakMap<QueryRunner, TransactionScope>();
  private readonly original: DataSource['createQueryRunner'];
  private readonly create: DataSource['createQueryRunner'];
  /** True where the database has one connection only. */
  readonly serial: boolean;

  constructor(
    readonly dataSource: DataSource,
    private readonly options: AmbientTransactionsOptions,
  ) {
    this.original = dataSource.createQueryRunner;
    const create = this.original.bind(dataSource);
    this.serial = /sqlite|sqljs/.test(dataSource.options.type);
    if (this.serial) {
      const views = new SerialQueryRunners(dataSource, create);
      this.create = () => views.create();
    } else {
      this.create = create;
    }
  }

  /** From now on the data source's work inside a transaction is part of it. */
  join(): void {
    this.dataSource.createQueryRunner = (mode) => this.current()?.queryRunner ?? this.create(mode);
  }

  /** Gives the data source back as it was. */
  leave(): void {
    this.dataSource.createQueryRunner = this.original;
  }

  /**
   * The transaction that the calling code is in.
   *
   * @throws TransactionClosedError when it has ended
   */
  current(): TransactionScope | undefined {
    const ambience = this.storage.getStore();
    if (!ambience) return undefined;
    if (ambience.scope.isOpen || ambience.finishing) return ambience.scope;
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
    return this.scopes.get(queryRunner) ?? this.adopt(queryRunner);
  }

  /** A query runner of its own, even inside a transaction. */
  createQueryRunner(): QueryRunner {
    return this.create('master');
  }

  /** Watches a transaction that the caller has begun and will end inside {@link finish}. */
  open(queryRunner: QueryRunner, isolation: IsolationLevel | undefined): TransactionScope {
    return this.watch(queryRunner, isolation, () => this.storage.getStore()?.finishing === true);
  }

  inside<T>(scope: TransactionScope, work: () => T): T {
    return this.storage.run({ scope, finishing: false }, work);
  }

  finish<T>(scope: TransactionScope, work: () => T): T {
    scope.close();
    return this.storage.run({ scope, finishing: true }, work);
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

  private adopt(queryRunner: QueryRunner): TransactionScope {
    return this.watch(queryRunner, undefined, () => false, (scope) => void this.runHooks(scope.takeHooks()));
  }

  private watch(
    queryRunner: QueryRunner,
    isolation: IsolationLevel | undefined,
    mayFinish: () => boolean,
    onEnd?: (scope: TransactionScope) => void,
  ): TransactionScope {
    const scope = new TransactionScope(queryRunner, {
      databaseType: this.dataSource.options.type,
      isolation,
      flush: this.options.flush,
      mayFinish,
      onEnd: (ended) => {
        this.scopes.delete(queryRunner);
        if (ended.isCommitted && ended.writtenMessages > 0) this.outside(this.options.onWritten);
        onEnd?.(ended);
      },
    });
    this.scopes.set(queryRunner, scope);
    return scope;
  }
}
