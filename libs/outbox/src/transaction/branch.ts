import type { TransactionScope } from './transaction-scope';

/**
 * One asynchronous course of code inside a transaction: the transactional method itself, what it runs inside a
 * savepoint, or what ends it.
 */
export class Branch {
  /** Set when the method or savepoint has ended: what it left running must not write any more. */
  ended = false;

  private constructor(
    readonly scope: TransactionScope,
    /** The branch around a savepoint's. */
    private readonly parent: Branch | undefined,
    /** True for what commits or rolls back, subscribers included. */
    readonly finishing: boolean,
  ) {}

  static root(scope: TransactionScope): Branch {
    return new Branch(scope, undefined, false);
  }

  static finishing(scope: TransactionScope): Branch {
    return new Branch(scope, undefined, true);
  }

  child(): Branch {
    return new Branch(this.scope, this, false);
  }

  /** Whether this branch and those around it still run. */
  get isAlive(): boolean {
    return this.finishing || (this.scope.isOpen && !this.ended && (this.parent?.isAlive ?? true));
  }

  /** Whether this branch is the given one or inside it. */
  isWithin(other: Branch): boolean {
    return this === other || (this.parent?.isWithin(other) ?? false);
  }
}
