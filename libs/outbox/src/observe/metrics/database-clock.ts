import type { Dialect, Sql } from '../../store/dialect';

/** What the database takes for the time, as far as it can be known without asking it each time. */
export class DatabaseClock {
  private ahead = 0;

  constructor(private readonly dialect: Pick<Dialect, 'now' | 'epochMs'>) {}

  /** Milliseconds since 1970. */
  now(): number {
    return Date.now() + this.ahead;
  }

  async ask(sql: Sql): Promise<void> {
    const asked = Date.now();
    const rows = (await sql.query(`SELECT ${this.dialect.epochMs(this.dialect.now)} AS now_ms`)) as { now_ms: number | string }[];
    this.ahead = Number(rows[0]?.now_ms) - (asked + Date.now()) / 2;
  }
}
