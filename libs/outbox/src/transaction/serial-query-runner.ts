import { AsyncLocalStorage } from 'node:async_hooks';
import { type DataSource, type EntityManager, type QueryRunner, QueryRunnerAlreadyReleasedError } from 'typeorm';
import { SqliteNestedTransactionError } from '../errors';
import type { IsolationLevel } from './transaction-options';

type Run = (manager: EntityManager) => Promise<unknown>;

/** Lets one holder in at a time, in order of arrival. */
class Gate {
  private tail: Promise<void> = Promise.resolve();
  private readonly holders = new AsyncLocalStorage<{ holds: boolean }>();

  /**
   * Resolves, when it is the caller's turn, with the function that ends the turn.
   *
   * @throws SqliteNestedTransactionError when the turn is the caller's already
   */
  async enter(): Promise<() => void> {
    if (this.holders.getStore()?.holds) {
      throw new SqliteNestedTransactionError(
        'SQLite has one connection: work beside the open transaction would wait for itself. Use its manager.',
      );
    }
    const previous = this.tail;
    let leave!: () => void;
    this.tail = new Promise((resolve) => {
      leave = resolve;
    });
    await previous;
    return leave;
  }

  /** Runs work whose caller has the turn. */
  async holding<T>(work: () => Promise<T>): Promise<T> {
    const holder = { holds: true };
    try {
      return await this.holders.run(holder, work);
    } finally {
      holder.holds = false;
    }
  }
}

/**
 * TypeORM's SQLite drivers have one query runner for everybody, so that statements of one transaction end up in
 * another. This hands out views of it: each has a transaction state of its own, and a view in a transaction keeps
 * the others waiting until it ends.
 */
export class SerialQueryRunners {
  private readonly gate = new Gate();

  constructor(
    private readonly dataSource: DataSource,
    private readonly createShared: () => QueryRunner,
  ) {}

  /** `manager.transaction` with a function that is known to be inside. */
  transaction(
    original: (...args: unknown[]) => Promise<unknown>,
    isolation: IsolationLevel | undefined,
    run: Run,
  ): Promise<unknown> {
    const inside: Run = (manager) => this.gate.holding(() => run(manager));
    return isolation === undefined ? original(inside) : original(isolation, inside);
  }

  create(): QueryRunner {
    const gate = this.gate;
    const shared = this.createShared();
    let leave: (() => void) | undefined;
    let released = false;

    const leaveWhenEnded = (): void => {
      if (!leave || shared.isTransactionActive) return;
      // What was left open inside must not make the next one a savepoint.
      Reflect.set(shared, 'transactionDepth', 0);
      leave();
      leave = undefined;
    };
    const assertUsable = (): void => {
      if (released) throw new QueryRunnerAlreadyReleasedError();
    };
    /** TypeORM believes in a transaction whose BEGIN was refused, and in one that was ended by hand. */
    const giveUp = async (): Promise<void> => {
      try {
        if (Reflect.get(shared, 'transactionDepth') === 0) return;
        Reflect.set(shared, 'transactionDepth', 1);
        if (shared.isTransactionActive) await shared.rollbackTransaction();
      } catch {
        // The database had rolled back already.
      } finally {
        // Unless it is the next one's by now.
        if (leave) Reflect.set(shared, 'isTransactionActive', false);
      }
    };
    const finish = (how: 'commitTransaction' | 'rollbackTransaction') => async (): Promise<void> => {
      try {
        // Called on the view, so that its statements pass by whoever watches the view.
        await shared[how].call(view);
      } finally {
        leaveWhenEnded();
      }
    };
    const own: Record<PropertyKey, unknown> = {
      [Symbol.asyncDispose]: Reflect.get(shared, Symbol.asyncDispose),
      startTransaction: async (...args: Parameters<QueryRunner['startTransaction']>): Promise<void> => {
        assertUsable();
        const isFirst = !leave;
        leave ??= await gate.enter();
        try {
          await shared.startTransaction.apply(view, args);
        } catch (error) {
          if (isFirst) await giveUp();
          throw error;
        } finally {
          leaveWhenEnded();
        }
      },
      commitTransaction: finish('commitTransaction'),
      rollbackTransaction: finish('rollbackTransaction'),
      query: async (...args: Parameters<QueryRunner['query']>): Promise<unknown> => {
        assertUsable();
        if (leave) return shared.query(...args) as Promise<unknown>;
        const leaveAfter = await gate.enter();
        try {
          return (await shared.query(...args)) as unknown;
        } finally {
          leaveAfter();
        }
      },
      release: async (): Promise<void> => {
        released = true;
        if (!leave) return;
        await giveUp();
        leaveWhenEnded();
      },
    };
    const view: QueryRunner = new Proxy(shared, {
      get(target, property, receiver): unknown {
        if (property === 'isTransactionActive') return leave !== undefined && target.isTransactionActive;
        return property in own ? own[property] : Reflect.get(target, property, receiver);
      },
      set(target, property, value): boolean {
        if (property in own || property === 'manager') own[property] = value;
        else Reflect.set(target, property, value);
        return true;
      },
    });
    own['manager'] = this.dataSource.createEntityManager(view);
    return view;
  }
}
