import type { DataSource, QueryRunner } from 'typeorm';

/** Lets one holder in at a time, in order of arrival. */
class Gate {
  private tail: Promise<void> = Promise.resolve();

  /** Resolves, when it is the caller's turn, with the function that ends the turn. */
  async enter(): Promise<() => void> {
    const previous = this.tail;
    let leave!: () => void;
    this.tail = new Promise((resolve) => {
      leave = resolve;
    });
    await previous;
    return leave;
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

  create(): QueryRunner {
    const gate = this.gate;
    const shared = this.createShared();
    let leave: (() => void) | undefined;

    const leaveWhenEnded = (): void => {
      if (shared.isTransactionActive) return;
      leave?.();
      leave = undefined;
    };
    const finish = (how: 'commitTransaction' | 'rollbackTransaction') => async (): Promise<void> => {
      try {
        // Called on the view, so that its statements pass by whoever watches the view.
        await shared[how].call(view);
      } finally {
        leaveWhenEnded();
      }
    };
    const own: Partial<Record<keyof QueryRunner, unknown>> = {
      startTransaction: async (...args: Parameters<QueryRunner['startTransaction']>): Promise<void> => {
        leave ??= await gate.enter();
        try {
          await shared.startTransaction.apply(view, args);
        } finally {
          leaveWhenEnded();
        }
      },
      commitTransaction: finish('commitTransaction'),
      rollbackTransaction: finish('rollbackTransaction'),
      query: async (...args: Parameters<QueryRunner['query']>): Promise<unknown> => {
        if (leave) return shared.query(...args) as Promise<unknown>;
        const leaveAfter = await gate.enter();
        try {
          return (await shared.query(...args)) as unknown;
        } finally {
          leaveAfter();
        }
      },
      release: async (): Promise<void> => {
        if (leave && shared.isTransactionActive) await shared.rollbackTransaction();
        leaveWhenEnded();
      },
    };
    const view: QueryRunner = new Proxy(shared, {
      get(target, property, receiver): unknown {
        if (property === 'isTransactionActive') return leave !== undefined && target.isTransactionActive;
        return property in own ? own[property as keyof QueryRunner] : Reflect.get(target, property, receiver);
      },
      set(target, property, value): boolean {
        if (property in own || property === 'manager') own[property as keyof QueryRunner] = value;
        else Reflect.set(target, property, value);
        return true;
      },
    });
    own.manager = this.dataSource.createEntityManager(view);
    return view;
  }
}
