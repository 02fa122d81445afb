import { errorMonitor } from 'node:events';
import type { QueryRunner } from 'typeorm';
import { IsolationConflictError, SavepointConflictError, TransactionClosedError, TransactionDoomedError } from '../errors';
import type { OutboxMessage } from '../event/message';
import type { Branch } from './branch';
import { Collected, type TransactionHook } from './collected';
import { failureEffect } from './failure-effect';
import { hasLeftTransaction } from './left-transaction';
import { Savepoints } from './savepoints';
import type { ScopeOptions } from './scope-options';
import type { IsolationLevel } from './transaction-options';
import { parseTransactionCommand } from './transaction-command';

type Query = QueryRunner['query'];
type Stream = QueryRunner['stream'];

/**
 * One database transaction as the outbox sees it. It watches the statements of its query runner, whoever sends
 * them: so it knows when a savepoint takes back a part of the events, when the database has undone something behind
 * the code's back, and when COMMIT comes, before which it writes the events.
 */
export class TransactionScope {
  private readonly query: Query;
  private readonly originalStream: Stream;
  private readonly collected = new Collected();
  private readonly savepoints = new Savepoints(this.collected);
  /** Who has set savepoints: until they have ended, others' statements could be undone with theirs. */
  private owners: readonly Branch[] = [];
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
    return this.savepoints.cause;
  }

  /** Messages to be written just before COMMIT. */
  add(messages: readonly OutboxMessage[]): void {
    this.assertUsable();
    this.collected.add(messages);
  }

  /** Runs just before the messages are written, and may add some. */
  onFlush(hook: () => void): void {
    this.assertUsable();
    this.collected.onFlush(hook);
  }

  onCommit(hook: TransactionHook): void {
    this.assertUsable();
    this.collected.onCommit(hook);
  }

  /** Runs before the hooks of others; of a transaction begun by hand, before its COMMIT is answered to its owner. */
  onCommitFirst(hook: TransactionHook): void {
    this.assertUsable();
    this.collected.onCommitFirst(hook);
  }

  onRollback(hook: TransactionHook): void {
    this.assertUsable();
    this.collected.onRollback(hook);
  }

  /** Refuses the commit, unless the code goes back to a savepoint that was set before. */
  spoil(cause: unknown): void {
    this.savepoints.damage(cause, cause instanceof SavepointConflictError ? 'lasting' : 'part');
  }

  /** From here on only the owner may send statements: what is left running must not write behind the outcome. */
  close(): void {
    if (this.state === 'open') this.state = 'closing';
  }

  /** The hooks of the outcome, once. */
  takeHooks(): readonly TransactionHook[] {
    return this.collected.takeHooks(this.state === 'committed' ? 'committed' : 'rolled-back');
  }

  /** Sends a statement in this transaction. */
  async send(...args: Parameters<Query>): Promise<unknown> {
    // Subscribers that are told of the end may go on with the connection.
    if (this.hasEnded && this.options.caller()?.finishing) return this.query(...args);
    this.assertUsable();
    const command = parseTransactionCommand(args[0]);
    switch (command?.kind) {
      case 'begin':
        this.savepoints.damage(new Error(`MySQL would commit at this statement: ${args[0].slice(0, 100)}`), 'transaction');
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
        this.savepoints.release(command.name);
        break;
      case 'rollback-to':
        this.savepoints.goBackTo(command.name);
        break;
    }
    return result;
  }

  private async commit(args: Parameters<Query>): Promise<unknown> {
    if (this.savepoints.isDamaged) throw this.doomed();
    const before = this.state;
    try {
      await this.writeMessages();
      this.state = 'ending';
      await this.quiet();
      if (!this.savepoints.isDamaged) {
        const result: unknown = await this.query(...args);
        this.end('committed');
        return result;
      }
    } catch (error) {
      // A second COMMIT would succeed without the events.
      this.savepoints.damage(error, 'transaction');
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

  private writeMessages(): Promise<void> {
    return this.collected.flush(async (messages) => {
      await this.options.flush(this.queryRunner, messages);
      this.written += messages.length;
    });
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
    const wasNotSet = this.savepoints.set(name);
    try {
      return await this.watched(args);
    } catch (error) {
      wasNotSet();
      throw error;
    }
  }

  private async watched(args: Parameters<Query>, isRollbackTo = false): Promise<unknown> {
    const sent: Promise<unknown> = this.query(...args);
    this.underway.add(sent);
    try {
      const result = await sent;
      if (hasLeftTransaction(result) || !this.options.isInTransaction()) {
        this.savepoints.damage(new Error(`This statement ended the transaction: ${args[0].slice(0, 100)}`), 'transaction');
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
    if (effect !== 'none') this.savepoints.damage(error, effect === 'transaction' ? 'transaction' : 'part');
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

  private assertAlive(): void {
    if (this.savepoints.isOver) throw this.doomed();
  }

  private doomed(): TransactionDoomedError {
    return new TransactionDoomedError(
      'An error has undone this transaction, or left it incomplete; it cannot be committed.',
      { cause: this.savepoints.cause },
    );
  }
}
