import { DataSource, type DataSourceOptions } from 'typeorm';
import type { ClaimSessions } from '../../libs/outbox/src/relay/claim-sessions';
import type { Connection } from '../../libs/outbox/src/store/connection';

/** Counts what is read through a data source with one connection, and through sessions that it has been given to count. */
export class ReadCounter {
  /** Rows that each transaction of the sessions has changed, by its largest statement. */
  readonly changed: number[] = [];
  private bySessions = 0;

  /** @param others data sources with one connection each, whose reading is not to be counted */
  private constructor(
    readonly dataSource: DataSource,
    private readonly others: readonly DataSource[],
  ) {}

  static async open(options: DataSourceOptions, ...others: DataSource[]): Promise<ReadCounter> {
    return new ReadCounter(await new DataSource({ ...options, poolSize: 1 } as DataSourceOptions).initialize(), others);
  }

  /** Over one whose pool has one connection. */
  static over(dataSource: DataSource, ...others: DataSource[]): ReadCounter {
    return new ReadCounter(dataSource, others);
  }

  /** Rows and index entries that the server has read for the work. */
  async during<T>(work: () => Promise<T>): Promise<{ readonly result: T; readonly reads: number }> {
    const first = await this.looked();
    const before = await this.looked();
    this.changed.length = 0;
    this.bySessions = 0;
    const result = await work();
    return { result, reads: (await this.looked()) - before - (before - first) + this.bySessions };
  }

  counted(sessions: ClaimSessions): ClaimSessions {
    return {
      openSession: () => sessions.openSession(),
      openConnection: async () => this.countedConnection(await sessions.openConnection()),
      close: () => sessions.close(),
    };
  }

  private get isPostgres(): boolean {
    return this.dataSource.options.type === 'postgres';
  }

  /** On PostgreSQL what all connections of the database have read that have told so. */
  private async looked(): Promise<number> {
    if (!this.isPostgres) return sessionReads(this.dataSource);
    for (const dataSource of [...this.others, this.dataSource]) await dataSource.query('SELECT pg_stat_force_next_flush()');
    const [row] = (await this.dataSource.query(
      'SELECT (SELECT SUM(seq_tup_read) FROM pg_stat_user_tables) + (SELECT SUM(idx_tup_read) FROM pg_stat_user_indexes) AS n',
    )) as { n: string }[];
    return Number(row?.n);
  }

  private async countedConnection(inner: Connection): Promise<Connection> {
    const first = this.isPostgres ? 0 : await sessionReads(inner);
    const before = this.isPostgres ? 0 : await sessionReads(inner);
    let rows = 0;
    return {
      query: (sql, parameters) => inner.query(sql, parameters),
      change: async (sql, parameters) => {
        const changed = await inner.change(sql, parameters);
        rows = Math.max(rows, changed);
        return changed;
      },
      begin: () => inner.begin(),
      commit: async () => {
        await inner.commit();
        this.changed.push(rows);
        rows = 0;
      },
      rollback: () => inner.rollback(),
      onSignal: (listener) => inner.onSignal(listener),
      onLost: (listener) => inner.onLost(listener),
      keepAwake: () => undefined,
      close: async () => {
        if (this.isPostgres) await inner.query('SELECT pg_stat_force_next_flush()');
        else this.bySessions += (await sessionReads(inner)) - before - (before - first);
        await inner.close();
      },
    };
  }
}

async function sessionReads(sql: { query(statement: string): Promise<unknown> }): Promise<number> {
  const rows = (await sql.query(`SHOW SESSION STATUS LIKE 'Handler_read%'`)) as { Value: string }[];
  return rows.reduce((sum, { Value }) => sum + Number(Value), 0);
}
