import type { QueryRunner } from 'typeorm';
import type { Connection } from './connection';
import type { Dialect } from './dialect';

/** How much longer than the server we wait for an answer, in ms: its error says more than ours. */
const GRACE = 1000;

interface Emitter {
  on(event: 'error' | 'end' | 'notification', listener: (cause?: Error) => void): unknown;
}

/**
 * A connection of the relay's own pool. The server ends it when it is silent inside a transaction for longer than the
 * timeout, and we end it when the server is. It is never given back to the pool: its settings die with it.
 */
export class RelayConnection implements Connection {
  private readonly listeners: ((cause: Error) => void)[] = [];
  private lost: Error | undefined;
  private active = false;
  private waker: NodeJS.Timeout | undefined;
  /** Ends the waiting for each statement that is not answered: a driver may never say that it will not be. */
  private readonly unanswered = new Set<(cause: Error) => void>();

  private constructor(
    private readonly queryRunner: QueryRunner,
    private readonly dialect: Dialect,
    private readonly driverConnection: unknown,
    private readonly timeoutMs: number,
  ) {
    const lose = (cause?: Error): void => this.lose(cause ?? new Error('The connection to the database has ended.'));
    const emitter = driverConnection as Partial<Emitter>;
    emitter.on?.('error', lose);
    emitter.on?.('end', lose);
  }

  /** @throws when the database does not answer, or does not take the settings */
  static async open(queryRunner: QueryRunner, dialect: Dialect, timeoutMs: number): Promise<RelayConnection> {
    const driverConnection: unknown = await queryRunner.connect();
    const connection = new RelayConnection(queryRunner, dialect, driverConnection, timeoutMs);
    try {
      for (const statement of dialect.sessionSettings(timeoutMs)) await connection.query(statement);
      await connection.assertIsolation();
      return connection;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  query(statement: string, parameters?: unknown[]): Promise<unknown> {
    return this.bounded(() => this.queryRunner.query(statement, parameters) as Promise<unknown>);
  }

  async change(statement: string, parameters?: unknown[]): Promise<number> {
    const result = await this.bounded(() => this.queryRunner.query(statement, parameters, true));
    return result.affected ?? 0;
  }

  async begin(): Promise<void> {
    await this.query('START TRANSACTION');
    this.active = true;
  }

  async commit(): Promise<void> {
    this.active = false;
    await this.query('COMMIT');
  }

  async rollback(): Promise<void> {
    if (!this.active || this.lost) return;
    this.active = false;
    // If it cannot be said, the connection must end: that rolls back too.
    await this.query('ROLLBACK').catch((error: unknown) => this.lose(toError(error)));
  }

  onSignal(listener: () => void): void {
    (this.driverConnection as Partial<Emitter>).on?.('notification', () => listener());
  }

  onLost(listener: (cause: Error) => void): void {
    if (this.lost) listener(this.lost);
    else this.listeners.push(listener);
  }

  keepAwake(): void {
    this.waker ??= setInterval(() => {
      if (this.unanswered.size === 0) void this.query('SELECT 1').catch(() => undefined);
    }, this.timeoutMs / 3).unref();
  }

  async close(): Promise<void> {
    clearInterval(this.waker);
    this.listeners.length = 0;
    if (!this.lost && !this.active && this.unanswered.size === 0) {
      this.lost = new Error('The connection is closed.');
      this.dialect.quit(this.driverConnection);
    } else {
      this.lose(new Error('The connection is closed.'));
    }
    await this.queryRunner.release().catch(() => undefined);
  }

  /** At REPEATABLE READ an earlier look would show heads that others have settled since. */
  private async assertIsolation(): Promise<void> {
    const rows = (await this.query(this.dialect.isolationQuery)) as Record<string, string>[];
    const level = Object.values(rows[0] ?? {})[0] ?? '';
    if (/^read.committed$/i.test(level)) return;
    throw new Error(`The relay's session must be at READ COMMITTED; the database says ${level}.`);
  }

  private async bounded<T>(send: () => Promise<T>): Promise<T> {
    if (this.lost) throw this.lost;
    const timer = setTimeout(
      () => this.lose(new Error(`The database has not answered for ${this.timeoutMs + GRACE} ms.`)),
      this.timeoutMs + GRACE,
    );
    let fail!: (cause: Error) => void;
    const lost = new Promise<never>((_, reject) => {
      fail = reject;
    });
    this.unanswered.add(fail);
    try {
      return await Promise.race([send(), lost]);
    } finally {
      this.unanswered.delete(fail);
      clearTimeout(timer);
    }
  }

  private lose(cause: Error): void {
    if (this.lost) return;
    this.lost = cause;
    this.active = false;
    clearInterval(this.waker);
    this.dialect.abandon(this.driverConnection);
    for (const fail of this.unanswered) fail(cause);
    for (const listener of this.listeners.splice(0)) listener(cause);
  }
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
