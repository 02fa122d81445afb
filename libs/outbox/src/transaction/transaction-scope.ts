import type { DataSource, QueryRunner } from 'typeorm';
import { TransactionClosedError, TransactionDoomedError } from '../errors';
import type { OutboxMessage } from '../event/message';
import { failureEffect } from './failure-effect';
import type { IsolationLevel } from './transaction-options';
import { parseTransactionCommand } from './transaction-command';

/** Runs when the transaction's outcome is known, outside of it. */
export type TransactionHook = () => unknown;

/** Writes the collected messages with the given query runner, inside its transaction. */
export type Flush = (queryRunner: QueryRunner, messages: readonly OutboxMessage[]) => Promise<void>;

export interface ScopeOptions {
  readonly databaseType: DataSource['options']['type'];
  readonly isolation: IsolationLevel | undefined;
  readonly flush: Flush;
  /** Tells, while the scope is closing, whether the caller is the one who closes it. */
  readonly mayFinish: () => boolean;
  /** Called once, as soon as the outcome is known. */
  readonly onEnd: (scope: TransactionScope) => void;
}

type Query = QueryRunner['query'];

interface Savepoint {
  readonly name: string;
  /** How much had been collected when it was set: going back to it forgets the rest. */
  readonly messages: number;
  readonly afterCommit: number;
}

interface Failure {
  readonly cause: unknown;
  /** How many savepoints were open: going back to one of these mends it. `null`: nothing does. */
  readonly depth: number | null;
}

/**
 * One database transaction as the outbox sees it. It watches the statements of its query runner, whoever sends
 * them: so it knows when a savepoint takes back a part of the events, when the database has undone something behind
 * the code's back, and when COMMIT comes, before which it writes the events.
 */
export class TransactionScope {
  private readonly query: Query;
  private readonly messages: OutboxMessage[] = [];
  private readonly afterCommit: TransactionHook[] = [];
  private readonly afterRollback: TransactionHook[] = [];
  private readonly savepoints: Savepoint[] = [];
  private failure: Failure | undefined;
  private state: 'open' | 'closing' | 'committed' | 'rolled-back' = 'open';
  private written = 0;

  constructor(
    readonly queryRunner: QueryRunner,
    private readonly options: ScopeOptions,
  ) {
    this.query = queryRunner.query.bind(queryRunner);
    queryRunner.query = this.send.bind(this) as Query;
  }

  get isOpen(): boolean {
    return this.state === 'open';
  }

  get isCommitted(): boolean {
    return this.state === 'committed';
  }

  get isolation(): IsolationLevel | undefined {
    return this.options.isolation;
  }

  /** How many messages the transaction has written to the log. */
  get writtenMessages(): number {
    return this.written;
  }

  /** Why the transaction cannot be committed, if so. */
  get doomedBy(): unknown {
    return this.failure?.cause;
  }

  /** Messages to be written just before COMMIT. */
  add(messages: readonly OutboxMessage[]): void {
    this.assertUsable();
    this.messages.push(...messages);
  }

  onCommit(hook: TransactionHook): void {
    this.assertUsable();
    this.afterCommit.push(hook);
  }

  onRollback(hook: TransactionHook): void {
    this.assertUsable();
    this.afterRollback.push(hook);
  }

  /** From here on only the owner may send statements: what is left running must not write behind the outcome. */
  close(): void {
    if (this.state === 'open') this.state = 'closing';
  }

  /** The hooks of the outcome, once. */
  takeHooks(): readonly TransactionHook[] {
    return (this.state === 'committed' ? this.afterCommit : this.afterRollback).splice(0);
  }

  /** Sends a statement in this transaction. */
  async send(...args: Parameters<Query>): Promise<unknown> {
    this.assertUsable();
    const command = parseTransactionCommand(args[0]);
    switch (command?.kind) {
      case 'commit':
        return this.commit(args);
      case 'rollback':
        return this.rollback(args);
      default:
        this.assertAlive();
        break;
    }
    const result = await this.watched(args);
    switch (command?.kind) {
      case 'savepoint':
        this.savepoints.push({
          name: command.name,
          messages: this.messages.length,
          afterCommit: this.afterCommit.length,
        });
        break;
      case 'release':
        this.releaseFrom(command.name);
        break;
      case 'rollback-to':
        this.goBackTo(command.name);
        break;
    }
    return result;
  }

  private async commit(args: Parameters<Query>): Promise<unknown> {
    if (this.failure) throw this.doomed();
    if (this.messages.length > 0) {
      const messages = this.messages.splice(0);
      await this.options.flush(this.queryRunner, messages);
      this.written += messages.length;
    }
    if (this.failure) throw this.doomed();
    const result: unknown = await this.query(...args);
    this.end('committed');
    return result;
  }

  private async rollback(args: Parameters<Query>): Promise<unknown> {
    try {
      return await this.query(...args);
    } finally {
      this.end('rolled-back');
    }
  }

  private end(outcome: 'committed' | 'rolled-back'): void {
    this.state = outcome;
    this.queryRunner.query = this.query;
    this.options.onEnd(this);
  }

  private async watched(args: Parameters<Query>): Promise<unknown> {
    try {
      const result: unknown = await this.query(...args);
      if (hasLeftTransaction(result)) {
        this.fail(new Error(`This statement ended the transaction: ${args[0].slice(0, 100)}`), null);
      }
      return result;
    } catch (error) {
      const effect = failureEffect(this.options.databaseType, error);
      if (effect !== 'none') this.fail(error, effect === 'transaction' ? null : this.savepoints.length);
      throw error;
    }
  }

  private fail(cause: unknown, depth: number | null): void {
    // The first cause is the one to report, unless a later one is beyond mending.
    if (!this.failure || (depth === null && this.failure.depth !== null)) this.failure = { cause, depth };
  }

  private goBackTo(name: string): void {
    const index = this.indexOf(name);
    // A savepoint that was set before the scope began to watch lies before all that it has collected.
    const savepoint = this.savepoints[index] ?? { messages: 0, afterCommit: 0 };
    this.savepoints.length = index + 1;
    this.messages.length = savepoint.messages;
    this.afterCommit.length = savepoint.afterCommit;
    if (this.failure && this.failure.depth !== null && this.failure.depth > index) this.failure = undefined;
  }

  private releaseFrom(name: string): void {
    this.savepoints.length = Math.max(0, this.indexOf(name));
  }

  /** -1 when it was set before the scope began to watch. */
  private indexOf(name: string): number {
    return this.savepoints.findLastIndex((savepoint) => savepoint.name === name);
  }

  private assertUsable(): void {
    if (this.state === 'open' || this.options.mayFinish()) return;
    throw new TransactionClosedError(
      'This work belongs to a transaction that has ended. Await it inside the transactional method.',
    );
  }

  /** What the database has already ended would run, and commit, statement by statement. */
  private assertAlive(): void {
    if (this.failure?.depth === null) throw this.doomed();
  }

  private doomed(): TransactionDoomedError {
    return new TransactionDoomedError(
      'The database has undone this transaction, or a part of it, after an error; it cannot be committed.',
      { cause: this.failure?.cause },
    );
  }
}

/** mysql2 gives the server's status flags with each result that is not rows; flag 1 says "in a transaction". */
function hasLeftTransaction(result: unknown): boolean {
  return (
    typeof result === 'object' &&
    result !== null &&
    'serverStatus' in result &&
    typeof result.serverStatus === 'number' &&
    (result.serverStatus & 1) === 0
  );
}
