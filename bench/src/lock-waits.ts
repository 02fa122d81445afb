import type { DataSource } from 'typeorm';
import type { DatabaseName } from './arguments.js';

/** Milliseconds between looks where the server does not count. */
const LOOK = 20;

/** How often anybody waits for a row or an advisory lock. MySQL and MariaDB count; on PostgreSQL it is looked for. */
export class LockWaits {
  private readonly seen = new Set<string>();
  private looking: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;
  private before = 0;

  private constructor(private readonly sql: DataSource) {}

  static async begin(sql: DataSource, db: DatabaseName): Promise<LockWaits> {
    const waits = new LockWaits(sql);
    if (db === 'postgres') waits.timer = setInterval(() => (waits.looking = waits.look()), LOOK);
    else waits.before = await waits.counted();
    return waits;
  }

  async end(): Promise<number> {
    if (this.timer === undefined) return (await this.counted()) - this.before;
    clearInterval(this.timer);
    await this.looking;
    return this.seen.size;
  }

  private async counted(): Promise<number> {
    const rows: { Value: string }[] = await this.sql.query(`SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_waits'`);
    return Number(rows[0]?.Value);
  }

  private async look(): Promise<void> {
    const rows: { pid: number; since: string }[] = await this.sql.query(
      `SELECT pid, query_start::text AS since FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    for (const { pid, since } of rows) this.seen.add(`${pid} ${since}`);
  }
}
