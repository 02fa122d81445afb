import { outboxMigrations } from 'nestjs-transactional-outbox';
import { DataSource, type DataSourceOptions } from 'typeorm';
import type { OwnServer } from '../../services/index.mjs';
import { type DatabaseAddress, type DatabaseName, LOCKED_KEYS, OWN_KEYS } from './child-config.js';
import { readValue } from './events.js';
import type { CommittedEvent, Effect, TableFigures } from './history.js';

/** The database of a run, as somebody outside of the library sees it. */
export class ChaosDatabase {
  constructor(
    private readonly server: OwnServer,
    private readonly type: DatabaseName,
  ) {}

  /** With another port: the same database through a proxy. */
  address(port = this.server.info.port): DatabaseAddress {
    const { host, user, password, database } = this.server.info;
    return { type: this.type, host, port, username: user, password, database };
  }

  /** The business tables, and those of the library by its migrations. */
  async prepare(): Promise<void> {
    await this.connected(async (dataSource) => {
      const id = this.type === 'postgres' ? 'BIGINT GENERATED ALWAYS AS IDENTITY' : 'BIGINT NOT NULL AUTO_INCREMENT';
      for (const statement of [
        'CREATE TABLE ledger_key (k VARCHAR(60) NOT NULL PRIMARY KEY, seq BIGINT NOT NULL)',
        'CREATE TABLE ledger_entry (event_id VARCHAR(60) NOT NULL PRIMARY KEY, topic VARCHAR(60) NOT NULL, k VARCHAR(60) NULL, seq BIGINT NULL)',
        `CREATE TABLE effect (id ${id} PRIMARY KEY, consumer VARCHAR(60) NOT NULL, event_id VARCHAR(60) NOT NULL)`,
        `INSERT INTO ledger_key (k, seq) VALUES ${[...LOCKED_KEYS, ...OWN_KEYS].map((key) => `('${key}', 0)`).join(', ')}`,
      ]) {
        await dataSource.query(statement);
      }
      await dataSource.runMigrations();
    });
  }

  async committed(): Promise<CommittedEvent[]> {
    const rows = await this.rows<{ event_id: string; topic: string; k: string | null; seq: string | number | null }>(
      'SELECT event_id, topic, k, seq FROM ledger_entry',
    );
    return rows.map(({ event_id, topic, k, seq }) => ({
      eventId: event_id,
      topic,
      key: k,
      seq: seq === null ? null : Number(seq),
    }));
  }

  /** Messages that were given up, by the documented column of the log. */
  async parked(): Promise<string[]> {
    const rows = await this.rows<{ payload: string }>('SELECT payload FROM outbox_message WHERE status = 2');
    return rows.map(({ payload }) => readValue(payload)?.eventId ?? `unreadable: ${payload.slice(0, 100)}`);
  }

  async effects(): Promise<Effect[]> {
    const rows = await this.rows<{ consumer: string; event_id: string }>('SELECT consumer, event_id FROM effect');
    return rows.map(({ consumer, event_id }) => ({ consumer, eventId: event_id }));
  }

  /** What the metrics must agree with. */
  async figures(): Promise<TableFigures & { readonly sent: Readonly<Record<string, number>> }> {
    const counts = async (query: string): Promise<Record<string, number>> =>
      Object.fromEntries((await this.rows<{ name: string | Buffer; n: string | number }>(query)).map(({ name, n }) => [String(name), Number(n)]));
    return {
      pending: await counts('SELECT m.topic AS name, COUNT(*) AS n FROM outbox_pending p JOIN outbox_message m ON m.id = p.id GROUP BY m.topic'),
      held: await counts('SELECT topic AS name, COUNT(*) AS n FROM outbox_held GROUP BY topic'),
      dead: await counts('SELECT topic AS name, COUNT(*) AS n FROM outbox_dead GROUP BY topic'),
      sent: await counts('SELECT topic AS name, COUNT(*) AS n FROM outbox_message WHERE status = 1 GROUP BY topic'),
      consumed: await counts('SELECT consumer AS name, COUNT(*) AS n FROM consumed_message WHERE dead = 0 GROUP BY consumer'),
    };
  }

  /** Batches that the sweeper has not written into the log. */
  async unswept(): Promise<number> {
    const [row] = await this.rows<{ n: string | number }>('SELECT COUNT(*) AS n FROM outbox_settled');
    return Number(row?.n);
  }

  /** Ends sessions that come from these ports, or all but our own. */
  async endSessions(ports?: readonly number[]): Promise<number> {
    return this.connected(async (dataSource) => {
      const sessions = await this.sessions(dataSource);
      const hit = sessions.filter(({ port }) => ports === undefined || ports.includes(port));
      for (const { id } of hit) {
        await dataSource.query(this.type === 'postgres' ? `SELECT pg_terminate_backend(${id})` : `KILL ${id}`).catch(() => undefined);
      }
      return hit.length;
    });
  }

  private async sessions(dataSource: DataSource): Promise<{ id: number; port: number }[]> {
    if (this.type === 'postgres') {
      const rows: { pid: number; client_port: number }[] = await dataSource.query(
        'SELECT pid, client_port FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
      );
      return rows.map(({ pid, client_port }) => ({ id: pid, port: client_port }));
    }
    const rows: { id: string | number; host: string }[] = await dataSource.query(
      "SELECT ID AS id, HOST AS host FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND HOST LIKE '127.0.0.1:%'",
    );
    return rows.map(({ id, host }) => ({ id: Number(id), port: Number(host.split(':')[1]) }));
  }

  private rows<T>(query: string): Promise<T[]> {
    return this.connected((dataSource) => dataSource.query(query));
  }

  private async connected<T>(work: (dataSource: DataSource) => Promise<T>): Promise<T> {
    const options = { ...this.address(), migrations: outboxMigrations(), poolSize: 1 } as DataSourceOptions;
    const dataSource = await new DataSource(options).initialize();
    try {
      return await work(dataSource);
    } finally {
      await dataSource.destroy();
    }
  }
}
