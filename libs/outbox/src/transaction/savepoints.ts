import { type Collected, type Mark, NOTHING_COLLECTED } from './collected';

/** `part`: going back to an open savepoint mends it. `lasting`: nothing does. `transaction`: the database has ended it. */
export type Damage = 'part' | 'lasting' | 'transaction';

interface Failure {
  readonly cause: unknown;
  /** How many savepoints were open: going back to one of these mends it. `null`: the transaction is over. */
  readonly depth: number | null;
}

/** The savepoints of a transaction, and the damage that going back to one of them mends. */
export class Savepoints {
  private readonly open: { readonly name: string; readonly mark: Mark }[] = [];
  private failure: Failure | undefined;

  constructor(private readonly collected: Collected) {}

  get isDamaged(): boolean {
    return this.failure !== undefined;
  }

  /** Whether the database has ended the transaction: what comes now would run, and commit, statement by statement. */
  get isOver(): boolean {
    return this.failure?.depth === null;
  }

  get cause(): unknown {
    return this.failure?.cause;
  }

  damage(cause: unknown, damage: Damage): void {
    const depth = { part: this.open.length, lasting: 0, transaction: null }[damage];
    // The first cause is the one to report, unless a later one is beyond mending.
    if (!this.failure || (depth === null && this.failure.depth !== null)) this.failure = { cause, depth };
  }

  /** Takes note of a savepoint before the database has answered; the returned function, that it was not set. */
  set(name: string): () => void {
    const savepoint = { name, mark: this.collected.mark };
    this.open.push(savepoint);
    return () => {
      this.open.splice(this.open.indexOf(savepoint), 1);
    };
  }

  goBackTo(name: string): void {
    const index = this.indexOf(name);
    // A savepoint that was set before anybody watched lies before all that was collected.
    this.collected.goBackTo(this.open[index]?.mark ?? NOTHING_COLLECTED);
    this.open.length = index + 1;
    if (this.failure && this.failure.depth !== null && this.failure.depth > index) this.failure = undefined;
  }

  release(name: string): void {
    const index = Math.max(0, this.indexOf(name));
    this.open.length = index;
    // The damage is now that of what is around the savepoint.
    const { failure } = this;
    if (failure && failure.depth !== null && failure.depth > index) this.failure = { ...failure, depth: index };
  }

  /** -1 when it was set before anybody watched. */
  private indexOf(name: string): number {
    return this.open.findLastIndex((savepoint) => savepoint.name === name);
  }
}
