import { createHash } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { driverCode } from './driver-code';
import type { Sql } from './dialect';

/** PostgreSQL's invalid_sql_statement_name: what was prepared is not there any more. */
const FORGOTTEN = '26000';

/**
 * Statements that PostgreSQL plans once for each connection instead of each time: to plan an insert is more than to do it.
 * They live in the server's session, so a connection must have one for itself.
 */
export class PreparedStatements {
  private readonly names = new Map<string, string>();

  /** @param enabled false where a pool gives out sessions by transaction, or may do so */
  constructor(private enabled: boolean) {}

  async query(sql: Sql, text: string, parameters: unknown[]): Promise<unknown> {
    if (!this.enabled) return sql.query(text, parameters);
    try {
      return await sql.query(new NamedText(this.nameOf(text), text) as unknown as string, parameters);
    } catch (error) {
      if (this.enabled && driverCode(error) === FORGOTTEN) this.stop();
      throw error;
    }
  }

  private nameOf(text: string): string {
    const known = this.names.get(text);
    if (known !== undefined) return known;
    const name = `outbox_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
    this.names.set(text, name);
    return name;
  }

  private stop(): void {
    this.enabled = false;
    new Logger('Outbox').warn(
      'PostgreSQL has forgotten a prepared statement of the outbox (DISCARD, DEALLOCATE, or a pool that gives sessions out by ' +
        'transaction). The transaction was rolled back. From now on the outbox prepares none, which costs each event some 0.3 ms.',
    );
  }
}

/**
 * The text of a statement, for TypeORM, its loggers and subscribers, which has a name for the driver: pg takes an object
 * with a text and a name for a prepared statement. A String object would do, but pg copies its characters one by one.
 */
class NamedText {
  constructor(
    readonly name: string,
    readonly text: string,
  ) {}

  get length(): number {
    return this.text.length;
  }

  toString(): string {
    return this.text;
  }

  valueOf(): string {
    return this.text;
  }
}
Object.setPrototypeOf(NamedText.prototype, String.prototype);
