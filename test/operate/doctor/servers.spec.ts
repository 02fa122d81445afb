import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { outboxMigrations } from 'nestjs-transactional-outbox';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type OwnServer, startOwn } from '../../services/index.mjs';
import { freshDataSource, SERVERS } from '../../setup/databases';
import { examine } from './examine';

/** A server of our own, on which an outbox is. */
class Stage {
  private readonly open: DataSource[] = [];

  private constructor(readonly server: OwnServer) {}

  static async begin(name: (typeof SERVERS)[number], settings: Record<string, string> = {}): Promise<Stage> {
    const stage = new Stage(await startOwn(name, { settings }));
    await (await stage.connect()).runMigrations();
    return stage;
  }

  async connect(extra: object = {}): Promise<DataSource> {
    const { name, host, port, user, password, database } = this.server.info;
    const options = { type: name, host, port, username: user, password, database, migrations: outboxMigrations(), ...extra } as DataSourceOptions;
    const dataSource = await new DataSource(options).initialize();
    this.open.push(dataSource);
    return dataSource;
  }

  async run(...statements: string[]): Promise<void> {
    const dataSource = await this.connect();
    for (const statement of statements) await dataSource.query(statement);
  }

  async disconnect(): Promise<void> {
    for (const dataSource of this.open.splice(0)) await dataSource.destroy();
  }

  async end(): Promise<void> {
    await this.disconnect();
    await this.server.remove();
  }
}

describe('the doctor on a MySQL server', () => {
  let stage: Stage;
  beforeAll(async () => {
    const address = `127.0.0.1:${await freePort()}`;
    stage = await Stage.begin('mysql', {
      'server-id': '1',
      'gtid-mode': 'ON',
      'enforce-gtid-consistency': 'ON',
      'plugin-load-add': 'group_replication.so',
      'loose-group-replication-group-name': '8a94f357-aab4-11df-86ab-c80aa9429562',
      'loose-group-replication-single-primary-mode': 'OFF',
      'loose-group-replication-start-on-boot': 'OFF',
      'loose-group-replication-local-address': address,
      'loose-group-replication-group-seeds': address,
    });
  });
  afterEach(() => stage?.disconnect());
  afterAll(() => stage?.end());

  it('finds nothing wrong, or that several servers write', async () => {
    expect((await examine(await stage.connect())).wrong).toEqual({});
    await stage.run('SET GLOBAL group_replication_bootstrap_group = ON', 'START GROUP_REPLICATION');
    const { wrong, healthy, seen } = await examine(await stage.connect());
    await stage.run('STOP GROUP_REPLICATION', 'SET GLOBAL super_read_only = OFF', 'SET GLOBAL read_only = OFF');
    // The group sets the steps of ids.
    expect(wrong).toMatchObject({ 'server.single-writer': 'warning' });
    expect(seen('server.single-writer')).toContain('several primaries');
    expect(healthy).toBe(true);
  });

  it('survives a user who may see next to nothing', async () => {
    await stage.run(`CREATE USER guest IDENTIFIED BY 'guest'`, `GRANT SELECT ON outbox.outbox_lane TO guest`);
    const { wrong, seen } = await examine(await stage.connect({ username: 'guest', password: 'guest' }));
    expect(wrong).toMatchObject({ 'tables.present': 'fault', 'messages.lost': 'unknown' });
    expect(seen('tables.present')).toContain('not to be seen by this user: outbox_message');
    expect(seen('messages.lost')).toContain('denied');
  });

  it('finds settings that break a promise', async () => {
    await stage.run(
      'SET GLOBAL innodb_flush_log_at_trx_commit = 2',
      'SET GLOBAL sync_binlog = 0',
      `SET GLOBAL binlog_format = 'STATEMENT'`,
      'SET GLOBAL auto_increment_increment = 3',
      'SET GLOBAL max_allowed_packet = 1048576',
      'SET GLOBAL wait_timeout = 20',
      'ALTER INSTANCE DISABLE INNODB REDO_LOG',
      'SET GLOBAL super_read_only = ON',
    );
    const { wrong, seen } = await examine(await stage.connect());
    expect(wrong).toEqual({
      'server.writable': 'fault',
      'server.durability': 'fault',
      'server.isolation': 'fault',
      'server.ids': 'warning',
      'server.packet': 'fault',
      'server.timeouts': 'warning',
    });
    for (const text of ['innodb_flush_log_at_trx_commit=2', 'the redo log is off', 'sync_binlog=0']) expect(seen('server.durability')).toContain(text);
    expect(seen('server.writable')).toContain('super_read_only=ON');
    expect(seen('server.ids')).toContain('steps of 3');
    expect(seen('server.timeouts')).toContain('20000 ms');
    // What is smaller is enough for smaller messages, but not for a transaction with many of them.
    expect((await examine(await stage.connect(), { maxMessageBytes: 100_000 })).wrong['server.packet']).toBe('warning');
  });
});

describe('the doctor on a MariaDB server', () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.begin('mariadb', { 'log-bin': 'ON', 'sync-binlog': '1', 'binlog-format': 'ROW', 'wsrep-provider': 'none', 'wsrep-cluster-address': 'gcomm://', 'wsrep-on': 'ON' });
  });
  afterEach(() => stage?.disconnect());
  afterAll(() => stage?.end());

  it('finds that it is a node of a Galera cluster', async () => {
    expect((await examine(await stage.connect())).wrong).toEqual({ 'server.single-writer': 'warning' });
  });

  it('finds settings that break a promise', async () => {
    await stage.run(
      'SET GLOBAL innodb_flush_log_at_trx_commit = 0',
      'SET GLOBAL sync_binlog = 0',
      'SET GLOBAL wsrep_on = OFF',
      `SET GLOBAL binlog_format = 'STATEMENT'`,
      'SET GLOBAL auto_increment_increment = 3',
      'SET GLOBAL max_allowed_packet = 4194304',
      'SET GLOBAL idle_transaction_timeout = 2',
      'SET GLOBAL read_only = ON',
    );
    const { wrong, seen } = await examine(await stage.connect());
    expect(wrong).toEqual({
      'server.writable': 'fault',
      'server.durability': 'fault',
      'server.isolation': 'fault',
      'server.ids': 'warning',
      'server.packet': 'warning',
      'server.timeouts': 'fault',
    });
    expect(seen('server.timeouts')).toContain('idle_transaction_timeout ends a transaction after 2000 ms');
    expect((await examine(await stage.connect(), { sessionTimeout: 2000 })).wrong['server.timeouts']).toBeUndefined();
  });
});

describe('the doctor on a PostgreSQL server', () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.begin('postgres', { wal_level: 'replica' });
  });
  afterEach(() => stage?.disconnect());
  afterAll(() => stage?.end());

  it('finds ids that do not follow commits', async () => {
    const ids = async (...statements: string[]): Promise<string> => {
      await stage.run(...statements);
      return (await examine(await stage.connect())).seen('server.ids');
    };
    expect(await ids(`INSERT INTO outbox_message (id, message_id, aggregate_type, aggregate_id, event_type, topic, created_at, updated_at, status)
      VALUES (500, 'a', 'a', 'a', 'a', 't', now() AT TIME ZONE 'utc', now() AT TIME ZONE 'utc', 1)`)).toContain('outbox_message_id_seq is behind');
    expect(await ids(`SELECT setval('outbox_message_id_seq', 500)`, 'ALTER SEQUENCE outbox_message_id_seq CACHE 20')).toContain('keeps 20 ids');
    expect(await ids('ALTER SEQUENCE outbox_message_id_seq CACHE 1 CYCLE')).toContain('does not only go up');
    expect(await ids('ALTER SEQUENCE outbox_message_id_seq NO CYCLE')).toBe('outbox_message_id_seq CACHE 1, INCREMENT 1');
  });

  it('survives a user who may see next to nothing', async () => {
    await stage.run('CREATE ROLE guest LOGIN', 'GRANT SELECT ON outbox_lane TO guest');
    const { wrong, seen } = await examine(await stage.connect({ username: 'guest' }));
    expect(wrong).toEqual({ 'server.ids': 'unknown', 'migrations.recorded': 'unknown', 'time.utc': 'unknown', 'messages.lost': 'unknown', 'messages.stranded': 'unknown' });
    expect(seen('messages.lost')).toContain('permission denied');
  });

  it('finds settings that break a promise', async () => {
    await stage.run(
      ...['fsync = off', 'synchronous_commit = off', 'full_page_writes = off', `idle_session_timeout = '30s'`, 'default_transaction_read_only = on'].map((setting) => `ALTER SYSTEM SET ${setting}`),
      'SELECT pg_reload_conf()',
    );
    const settled = async (): Promise<boolean> => (await (await stage.connect()).query('SHOW default_transaction_read_only'))[0].default_transaction_read_only === 'on';
    await expect.poll(settled).toBe(true);
    const { wrong, seen } = await examine(await stage.connect());
    expect(wrong).toEqual({ 'server.writable': 'fault', 'server.durability': 'fault', 'server.timeouts': 'warning' });
    for (const text of ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off']) expect(seen('server.durability')).toContain(text);
  });

  it('finds that it is a standby', async () => {
    const { dataDir } = stage.server.info;
    // One from Docker keeps its data to itself.
    if (dataDir === undefined) return;
    await stage.server.stop();
    writeFileSync(join(dataDir, 'standby.signal'), '');
    await stage.server.restart();
    expect((await examine(await stage.connect())).seen('server.writable')).toContain('pg_is_in_recovery()');
  });

  it('finds a database that cannot hold every text', async () => {
    const { dataSource, close } = await freshDataSource('postgres');
    try {
      const name = `${String(dataSource.options.database)}_latin`;
      await dataSource.query(`CREATE DATABASE ${name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`);
      const latin = await new DataSource({ ...dataSource.options, database: name } as DataSourceOptions).initialize();
      expect((await examine(latin)).wrong['connection.charset']).toBe('fault');
      await latin.destroy();
      await dataSource.query(`DROP DATABASE ${name}`);
    } finally {
      await close();
    }
  });
});

it.each(['mysql', 'mariadb'] as const)('the doctor on %s finds a connection that cannot carry every text', async (database) => {
  const { dataSource, close } = await freshDataSource(database, { charset: 'UTF8_GENERAL_CI' } as Partial<DataSourceOptions>);
  const { wrong, seen } = await examine(dataSource);
  await close();
  expect(wrong['connection.charset']).toBe('fault');
  expect(seen('connection.charset')).toContain('utf8mb3');
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
