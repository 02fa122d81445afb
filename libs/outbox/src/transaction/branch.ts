import { WorkNotAwaitedError } from '../errors';
import type { TransactionScope } from './transaction-scope';

/**
 * One asynchronous course of code inside a transaction: the transactional method itself, what it runs inside a
 * savepoint, or what ends it.
 */
export class Branch {
  /** Set when the method or savepoint has ended: what it left running must not write any more. */
  ended = false;
  private parts = 0;

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

  /** How many branches are around it. */
  get depth(): number {
    return this.parent ? this.parent.depth + 1 : 0;
  }

  child(): Branch {
    return new Branch(this.scope, this, false);
  }

  /** Says that a method begins that belongs to this branch; the returned function, that it has ended. */
  enter(): () => void {
    this.parts++;
    let left = false;
    return () => {
      if (!left) this.parts--;
      left = true;
    };
  }

  /** @throws WorkNotAwaitedError while a method that belongs to this branch still runs */
  assertComplete(): void {
    if (this.parts === 0) return;
    throw new WorkNotAwaitedError(
      `The transaction's work has ended while ${this.parts} of its methods still run. Await them; forEach(async …) ` +
        'and Promise.race do not.',
    );
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
