import type { Step } from './program';

export type Dialect = 'mysql' | 'mariadb' | 'postgres' | 'sqlite';

/** What must be found after a program without parallel parts. */
export interface Prediction {
  readonly rows: readonly number[];
  /** In the order of the log. */
  readonly events: readonly number[];
  readonly hooks: readonly string[];
  /** What the program ends with: `ok`, or what kind of error. */
  readonly outcome: string;
}

/** An error, by its kind: `OWN`, `QUERY` (of the database) or the code of the library's error. */
class Failure extends Error {
  constructor(readonly kind: string) {
    super(kind);
  }
}

interface Mark {
  readonly name: string;
  readonly items: number;
  /** Whether the transaction had failed already. */
  readonly failed: boolean;
}

interface Item {
  readonly kind: 'row' | 'event' | 'hook';
  readonly id: number;
}

/** One database transaction. */
class Transaction {
  readonly items: Item[] = [];
  readonly onRollback: number[] = [];
  private readonly marks: Mark[] = [];
  /** PostgreSQL takes no statement after an error, until a savepoint before it is gone back to. */
  private failed = false;
  /** Beyond mending. */
  private dead = false;
  ended: 'committed' | 'rolled-back' | undefined;
  /** How many savepoints of the library or TypeORM are open. */
  depth = 0;
  private failureIsSeen = false;

  constructor(
    private readonly dialect: Dialect,
    /** Whether the library knows of the transaction: one that was begun by hand only from the first event on. */
    private watched: boolean,
  ) {}

  add(item: Item): void {
    if (this.ended) throw new Failure('OUTBOX_TRANSACTION_CLOSED');
    if (item.kind === 'row') this.statement();
    else this.watched = true;
    this.items.push(item);
  }

  statement(): void {
    if (this.ended) throw new Failure('OUTBOX_TRANSACTION_CLOSED');
    if (this.dead) throw new Failure('OUTBOX_TRANSACTION_DOOMED');
    if (this.failed) this.fail();
  }

  /** A statement that the database refuses. */
  fail(): never {
    if (this.dialect === 'postgres') {
      if (!this.failed) this.failureIsSeen = this.watched;
      this.failed = true;
    }
    throw new Failure('QUERY');
  }

  savepoint(name: string): void {
    this.statement();
    if (this.dialect === 'mysql' || this.dialect === 'mariadb') {
      const same = this.marks.findIndex((mark) => mark.name === name);
      if (same >= 0) this.marks.splice(same, 1);
    }
    this.marks.push({ name, items: this.items.length, failed: false });
  }

  release(name: string): void {
    this.statement();
    const index = this.marks.findLastIndex((mark) => mark.name === name);
    if (index < 0) this.fail();
    this.marks.length = index;
  }

  rollbackTo(name: string): void {
    if (this.ended) throw new Failure('OUTBOX_TRANSACTION_CLOSED');
    if (this.dead) throw new Failure('OUTBOX_TRANSACTION_DOOMED');
    const index = this.marks.findLastIndex((mark) => mark.name === name);
    const mark = this.marks[index];
    if (!mark) {
      this.dead = this.watched;
      return this.fail();
    }
    this.marks.length = index + 1;
    this.items.length = mark.items;
    this.failed = false;
  }

  /** Whether COMMIT is refused, or turns into ROLLBACK without a word. */
  commitFails(): 'no' | 'loud' | 'silent' {
    if (this.dead) return 'loud';
    if (!this.failed) return 'no';
    return this.failureIsSeen || this.items.some(({ kind }) => kind === 'event') ? 'loud' : 'silent';
  }
}

interface World {
  readonly rows: number[];
  readonly events: number[];
  readonly hooks: string[];
}

export function predict(dialect: Dialect, steps: readonly Step[]): Prediction {
  const model = new Model(dialect);
  const outcome = model.program(steps);
  return { ...model.world, outcome };
}

class Model {
  readonly world: World = { rows: [], events: [], hooks: [] };

  constructor(private readonly dialect: Dialect) {}

  program(steps: readonly Step[]): string {
    return this.attempt(() => this.run(steps, undefined))?.kind ?? 'ok';
  }

  private attempt(work: () => void): Failure | undefined {
    try {
      work();
      return undefined;
    } catch (error) {
      if (error instanceof Failure) return error;
      throw error;
    }
  }

  private run(steps: readonly Step[], open: Transaction | undefined): void {
    for (const step of steps) this.step(step, open);
  }

  private step(step: Step, open: Transaction | undefined): void {
    switch (step.kind) {
      case 'write': {
        const items: Item[] = [{ kind: 'row', id: step.id }, { kind: 'event', id: step.id }];
        if (!open) throw new Failure('OUTBOX_NO_TRANSACTION');
        if (step.emitFirst) items.reverse();
        for (const item of items) open.add(item);
        return;
      }
      case 'row':
        if (open) open.add({ kind: 'row', id: step.id });
        else this.world.rows.push(step.id);
        return;
      case 'emit':
        if (!open) throw new Failure('OUTBOX_NO_TRANSACTION');
        open.add({ kind: 'event', id: step.id });
        return;
      case 'hooks':
        if (!open) throw new Failure('OUTBOX_NO_TRANSACTION');
        open.add({ kind: 'hook', id: step.id });
        open.onRollback.push(step.id);
        return;
      case 'duplicate':
        if (!open) throw new Failure('QUERY');
        open.statement();
        return open.fail();
      case 'throw':
        throw new Failure('OWN');
      case 'sql':
        return this.sql(step.command, step.name, open as Transaction);
      case 'catch':
        this.attempt(() => this.run(step.body, open));
        return;
      case 'call':
        return this.call(step, open);
      case 'transaction':
        return this.savepoint(step.body, open as Transaction);
      case 'explicit':
        if (open) return this.savepoint(step.body, open);
        return this.begin(step.body, false);
      case 'pause':
        return;
      case 'parallel':
      case 'leave':
        throw new Error('The model knows no parallel work.');
    }
  }

  private call({ propagation, body }: Extract<Step, { kind: 'call' }>, open: Transaction | undefined): void {
    if (open?.ended) throw new Failure('OUTBOX_TRANSACTION_CLOSED');
    switch (propagation) {
      case 'REQUIRED':
        return open ? this.run(body, open) : this.begin(body, true);
      case 'NESTED':
        return open ? this.savepoint(body, open) : this.begin(body, true);
      case 'MANDATORY':
        if (!open) throw new Failure('OUTBOX_NO_TRANSACTION');
        return this.run(body, open);
      case 'SUPPORTS':
        return this.run(body, open);
      case 'REQUIRES_NEW':
      case 'NOT_SUPPORTED':
        if (open && this.dialect === 'sqlite') throw new Failure('OUTBOX_SQLITE_NESTED_TRANSACTION');
        return propagation === 'REQUIRES_NEW' ? this.begin(body, true) : this.run(body, undefined);
      case 'NEVER':
        if (open) throw new Failure('OUTBOX_NO_TRANSACTION');
        return this.run(body, undefined);
    }
  }

  private begin(body: readonly Step[], isAmbient: boolean): void {
    const transaction = new Transaction(this.dialect, isAmbient);
    const failure = this.attempt(() => this.run(body, transaction));
    if (failure) {
      if (!transaction.ended) this.rollBack(transaction);
      throw failure;
    }
    if (transaction.ended === 'committed') return;
    const commitFails = transaction.ended ? 'loud' : transaction.commitFails();
    if (commitFails === 'no') return this.commit(transaction);
    if (!transaction.ended) this.rollBack(transaction);
    if (commitFails === 'loud') throw new Failure(isAmbient ? 'OUTBOX_TRANSACTION_DOOMED' : 'ANY');
  }

  private savepoint(body: readonly Step[], open: Transaction): void {
    if (open.ended) throw new Failure('OUTBOX_TRANSACTION_CLOSED');
    const name = `typeorm_${open.depth + 1}`;
    open.savepoint(name);
    open.depth++;
    const failure = this.attempt(() => {
      this.run(body, open);
      open.release(name);
    });
    if (failure) this.attempt(() => open.rollbackTo(name));
    open.depth--;
    if (failure) throw failure;
  }

  private sql(command: string, name: string, open: Transaction): void {
    switch (command) {
      case 'SAVEPOINT':
        return open.savepoint(name);
      case 'RELEASE SAVEPOINT':
        return open.release(name);
      case 'ROLLBACK TO SAVEPOINT':
        return open.rollbackTo(name);
      case 'COMMIT':
        if (open.ended) throw new Failure('OUTBOX_TRANSACTION_CLOSED');
        if (open.commitFails() !== 'no') throw new Failure('OUTBOX_TRANSACTION_DOOMED');
        return this.commit(open);
      default:
        if (open.ended) throw new Failure('OUTBOX_TRANSACTION_CLOSED');
        return this.rollBack(open);
    }
  }

  private commit(transaction: Transaction): void {
    transaction.ended = 'committed';
    for (const { kind, id } of transaction.items) {
      if (kind === 'row') this.world.rows.push(id);
      else if (kind === 'event') this.world.events.push(id);
      else this.world.hooks.push(`committed ${id}`);
    }
  }

  private rollBack(transaction: Transaction): void {
    transaction.ended = 'rolled-back';
    this.world.hooks.push(...transaction.onRollback.map((id) => `rolled back ${id}`));
  }
}
