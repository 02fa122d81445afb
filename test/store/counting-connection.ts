import type { Connection } from '../../libs/outbox/src/store/connection';

/** Counts what the statements of a connection read, and keeps them to be explained. */
export class CountingConnection implements Connection {
  readonly statements: { sql: string; parameters: unknown[] | undefined }[] = [];

  constructor(
    private readonly inner: Connection,
    private readonly isPostgres: boolean,
  ) {}

  query(sql: string, parameters?: unknown[]): Promise<unknown> {
    this.statements.push({ sql, parameters });
    return this.inner.query(sql, parameters);
  }
  change(sql: string, parameters?: unknown[]): Promise<number> {
    this.statements.push({ sql, parameters });
    return this.inner.change(sql, parameters);
  }
  begin(): Promise<void> {
    return this.inner.begin();
  }
  commit(): Promise<void> {
    return this.inner.commit();
  }
  rollback(): Promise<void> {
    return this.inner.rollback();
  }
  onSignal(): void {
    // Not of interest here.
  }
  onLost(): void {
    // Nor this.
  }
  keepAwake(): void {
    // Nor this.
  }
  close(): Promise<void> {
    return this.inner.close();
  }

  /** Rows and index entries read so far, in this session (MySQL, MariaDB) or in its open transaction (PostgreSQL). */
  async reads(): Promise<number> {
    if (this.isPostgres) {
      const rows = (await this.inner.query(
        `SELECT COALESCE(SUM(seq_tup_read + idx_tup_fetch), 0) AS n FROM pg_stat_xact_user_tables`,
      )) as { n: string }[];
      return Number(rows[0]?.n);
    }
    const rows = (await this.inner.query(`SHOW SESSION STATUS LIKE 'Handler_read%'`)) as { Value: string }[];
    return rows.reduce((sum, { Value }) => sum + Number(Value), 0);
  }

  /** What the counting itself reads. */
  async overhead(): Promise<number> {
    if (this.isPostgres) {
      // What earlier transactions have read must not be counted with the next.
      await this.inner.query('SELECT pg_stat_force_next_flush()');
      return 0;
    }
    const before = await this.reads();
    return (await this.reads()) - before;
  }

  async explain(sql: string, parameters: unknown[] | undefined): Promise<string> {
    const explain = this.isPostgres ? 'EXPLAIN' : 'EXPLAIN FORMAT=TRADITIONAL';
    const rows = (await this.inner.query(`${explain} ${sql}`, parameters)) as Record<string, unknown>[];
    return rows.map((row) => Object.entries(row).map(([name, value]) => `${name}=${String(value)}`).join(' ')).join('\n');
  }
}
