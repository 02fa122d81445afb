import { errorMonitor } from 'node:events';
import type { DataSource, QueryRunner } from 'typeorm';
import { IsolationConflictError, SavepointConflictError, TransactionClosedError, TransactionDoomedError } from '../errors';
import type { OutboxMessage } from '../event/message';
import type { Branch } from './branch';
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
  /** Whether the query runner serves this transaction alone: then it stays watched when the transaction has ended. */
  readonly isOwned: boolean;
  /** Whether the connection is still in a transaction, as far as its driver can tell. */
  readonly isInTransaction: () => boolean;
  readonly flush: Flush;
  /** The branch of this transaction that calls, if it is one: code with an explicit manager is none. */
  readonly caller: () => Branch | undefined;
  /** Called once, as soon as the outcome is known. */
  readonly onEnd: (scope: TransactionScope) => void;
}

type Query = QueryRunner['query'];
type Stream = QueryRunner['stream'];

interface Savepoint {
  readonly name: string;
  readonly collected: Collected;
}

/** How much a transaction had collected: a savepoint that is undone takes back what came after it. */
interface Collected {
  readonly messages: number;
  readonly beforeFlush: number;
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
  private readonly originalStream: Stream;
  private readonly messages: OutboxMessage[] = [];
  private readonly beforeFlush: (() => void)[] = [];
  private readonly afterCommit: TransactionHook[] = [];
  private readonly afterRollback: TransactionHook[] = [];
  private readonly savepoints: Savepoint[] = [];
  /** Who has set savepoints: until they have ended, others' statements could be undone with theirs. */
  private owners: readonly Branch[] = [];
  private failure: Failure | undefined;
  /** `ending`: COMMIT or ROLLBACK is on its way, and what comes now would come after it. */
  private state: 'open' | 'closing' | 'ending' | 'committed' | 'rolled-back' = 'open';
  private written = 0;
  /** Statements that are not answered yet. */
  private readonly underway = new Set<Promise<unknown>>();

  constructor(
    readonly queryRunner: QueryRunner,
    private readonly options: ScopeOptions,
  ) {
    this.query = queryRunner.query.bind(queryRunner);
    queryRunner.query = this.send.bind(this) as Query;
    this.originalStream = queryRunner.stream;
    if (this.hasStreams) queryRunner.stream = this.stream.bind(this);
  }

  get isOpen(): boolean {
    return this.state === 'open';
  }

  get isCommitted(): boolean {
    return this.state === 'committed';
  }

  get hasEnded(): boolean {
    return this.state === 'committed' || this.state === 'rolled-back';
  }

  /** @throws IsolationConflictError when the transaction was not begun at the level asked for */
  assertIsolation(asked: IsolationLevel | undefined): void {
    const { isolation } = this.options;
    if (asked && asked !== isolation) {
      throw new IsolationConflictError(
        `The open transaction runs at ${isolation ?? 'the default isolation level'}, not at ${asked}.`,
      );
    }
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

  /** Runs just before the messages are written, and may add some. */
  onFlush(hook: () => void): void {
    this.assertUsable();
    this.beforeFlush.push(hook);
  }

  onCommit(hook: TransactionHook): void {
    this.assertUsable();
    this.afterCommit.push(hook);
  }

  /** Runs before the hooks of others; of a transaction begun by hand, before its COMMIT is answered to its owner. */
  onCommitFirst(hook: TransactionHook): void {
    this.assertUsable();
    this.afterCommit.unshift(hook);
  }

  onRollback(hook: TransactionHook): void {
    this.assertUsable();
    this.afterRollback.push(hook);
  }

  /** Refuses the commit, unless the code goes back to a savepoint that was set before. */
  spoil(cause: unknown): void {
    this.fail(cause, cause instanceof SavepointConflictError ? 0 : this.savepoints.length);
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
    // Subscribers that are told of the end may go on with the connection.
    if (this.hasEnded && this.options.caller()?.finishing) return this.query(...args);
    this.assertUsable();
    const command = parseTransactionCommand(args[0]);
    switch (command?.kind) {
      case 'begin':
        this.fail(new Error(`MySQL would commit at this statement: ${args[0].slice(0, 100)}`), null);
        throw this.doomed();
      case 'commit':
        return this.commit(args);
      case 'rollback':
        return this.rollback(args);
      default:
        this.assertAlive();
        break;
    }
    if (command?.kind === 'savepoint') return this.setSavepoint(command.name, args);
    if (command) await this.quiet();
    const result = await this.watched(args, command?.kind === 'rollback-to');
    switch (command?.kind) {
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
    const before = this.state;
    try {
      await this.writeMessages();
      this.state = 'ending';
      await this.quiet();
      if (!this.failure) {
        const result: unknown = await this.query(...args);
        this.end('committed');
        return result;
      }
    } catch (error) {
      // A second COMMIT would succeed without the events.
      this.fail(error, null);
      this.state = before;
      throw error;
    }
    this.state = before;
    throw this.doomed();
  }

  /**
   * Waits for the statements that others have sent: they are on their way, but TypeORM does not keep their order, and
   * one that came behind the end of a savepoint or of the transaction would be outside of it.
   */
  private async quiet(): Promise<void> {
    while (this.underway.size > 0) await Promise.allSettled(this.underway);
  }

  /** What is emitted while messages are written is written too. */
  private async writeMessages(): Promise<void> {
    while (this.beforeFlush.length > 0 || this.messages.length > 0) {
      for (const hook of this.beforeFlush.splice(0)) hook();
      const messages = this.messages.splice(0);
      if (messages.length > 0) await this.options.flush(this.queryRunner, messages);
      this.written += messages.length;
    }
  }

  private async rollback(args: Parameters<Query>): Promise<unknown> {
    this.state = 'ending';
    try {
      await this.quiet();
      return await this.query(...args);
    } finally {
      this.end('rolled-back');
    }
  }

  private end(outcome: 'committed' | 'rolled-back'): void {
    this.state = outcome;
    if (!this.options.isOwned) {
      this.queryRunner.query = this.query;
      if (this.hasStreams) this.queryRunner.stream = this.originalStream;
    }
    this.options.onEnd(this);
  }

  private async setSavepoint(name: string, args: Parameters<Query>): Promise<unknown> {
    const owner = this.options.caller();
    const { owners } = this;
    // Known before the database answers, so that a branch that runs beside sees it.
    if (owner) this.owners = [...owners.filter(({ isAlive }) => isAlive), owner];
    try {
      if (this.underway.size > 0) {
        await this.quiet();
        this.assertUsable();
      }
      return await this.watchedSavepoint(name, args);
    } catch (error) {
      this.owners = owners;
      throw error;
    }
  }

  private async watchedSavepoint(name: string, args: Parameters<Query>): Promise<unknown> {
    const savepoint: Savepoint = {
      name,
      collected: {
        messages: this.messages.length,
        beforeFlush: this.beforeFlush.length,
        afterCommit: this.afterCommit.length,
      },
    };
    this.savepoints.push(savepoint);
    try {
      return await this.watched(args);
    } catch (error) {
      this.savepoints.splice(this.savepoints.indexOf(savepoint), 1);
      throw error;
    }
  }

  private async watched(args: Parameters<Query>, isRollbackTo = false): Promise<unknown> {
    const sent: Promise<unknown> = this.query(...args);
    this.underway.add(sent);
    try {
      const result = await sent;
      if (hasLeftTransaction(result) || !this.options.isInTransaction()) {
        this.fail(new Error(`This statement ended the transaction: ${args[0].slice(0, 100)}`), null);
      }
      return result;
    } catch (error) {
      this.failedAt(error, isRollbackTo);
      throw error;
    } finally {
      this.underway.delete(sent);
    }
  }

  private failedAt(error: unknown, isRollbackTo = false): void {
    const isOver = isRollbackTo || !this.options.isInTransaction();
    const effect = isOver ? 'transaction' : failureEffect(this.options.databaseType, error);
    if (effect !== 'none') this.fail(error, effect === 'transaction' ? null : this.savepoints.length);
  }

  /** SQLite has none. */
  private get hasStreams(): boolean {
    return /mysql|mariadb|postgres/.test(this.options.databaseType);
  }

  /** A stream's statement is part of the transaction as any other. */
  private async stream(...args: Parameters<Stream>): Promise<Awaited<ReturnType<Stream>>> {
    this.assertUsable();
    this.assertAlive();
    const stream = await this.originalStream.apply(this.queryRunner, args);
    return stream.on(errorMonitor, (error: unknown) => this.failedAt(error));
  }

  private fail(cause: unknown, depth: number | null): void {
    // The first cause is the one to report, unless a later one is beyond mending.
    if (!this.failure || (depth === null && this.failure.depth !== null)) this.failure = { cause, depth };
  }

  private goBackTo(name: string): void {
    const index = this.indexOf(name);
    // A savepoint that was set before the scope began to watch lies before all that it has collected.
    const collected = this.savepoints[index]?.collected ?? { messages: 0, beforeFlush: 0, afterCommit: 0 };
    this.savepoints.length = index + 1;
    this.messages.length = collected.messages;
    this.beforeFlush.length = collected.beforeFlush;
    this.afterCommit.length = collected.afterCommit;
    if (this.failure && this.failure.depth !== null && this.failure.depth > index) this.failure = undefined;
  }

  private releaseFrom(name: string): void {
    const index = Math.max(0, this.indexOf(name));
    this.savepoints.length = index;
    // The damage is now that of what is around the savepoint.
    const { failure } = this;
    if (failure && failure.depth !== null && failure.depth > index) this.failure = { ...failure, depth: index };
  }

  /** -1 when it was set before the scope began to watch. */
  private indexOf(name: string): number {
    return this.savepoints.findLastIndex((savepoint) => savepoint.name === name);
  }

  private assertUsable(): void {
    const caller = this.options.caller();
    const isOver = this.state === 'ending' || this.hasEnded;
    if (isOver || (caller ? !caller.isAlive : this.state !== 'open')) {
      throw new TransactionClosedError(
        'This work belongs to a transaction, or a part of one, that has ended. Await it inside the transactional method.',
      );
    }
    const owner = this.owners.findLast(({ isAlive }) => isAlive);
    if (owner && caller && !caller.finishing && !caller.isWithin(owner)) {
      throw new SavepointConflictError(
        'Another branch of this transaction has a savepoint open, and could undo this work with its own. Run nested ' +
          'parts of one transaction one after the other.',
      );
    }
  }

  /** What the database has already ended would run, and commit, statement by statement. */
  private assertAlive(): void {
    if (this.failure?.depth === null) throw this.doomed();
  }

  private doomed(): TransactionDoomedError {
    return new TransactionDoomedError(
      'An error has undone this transaction, or left it incomplete; it cannot be committed.',
      { cause: this.failure?.cause },
    );
  }
}

/** mysql2 gives the server's status flags with each result that is not rows; flag 1 says "in a transaction". */
function hasLeftTransaction(result: unknown): boolean {
  if (typeof result !== 'object' || result === null) return false;
  // Of a procedure with rows, and of several statements in one, the last result counts.
  if (Array.isArray(result)) return result.length > 0 && isHeader(result.at(-1)) && hasLeftTransaction(result.at(-1));
  // TypeORM's own kind of result, which query builders ask for.
  if ('raw' in result && 'records' in result) return hasLeftTransaction(result.raw);
  return 'serverStatus' in result && typeof result.serverStatus === 'number' && (result.serverStatus & 1) === 0;
}

/** No row has columns of these names. */
function isHeader(result: unknown): boolean {
  return typeof result === 'object' && result !== null && 'affectedRows' in result && 'warningStatus' in result;
}
