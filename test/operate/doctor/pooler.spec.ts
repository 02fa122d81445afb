import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { outboxMigrations } from 'nestjs-transactional-outbox';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PgBouncer, startPgBouncer } from '../../services/pgbouncer.mjs';
import { freshDataSource } from '../../setup/databases';
import { type Examined, examine } from './examine';

async function examineAt(options: DataSourceOptions): Promise<Examined> {
  const dataSource = await new DataSource(options).initialize();
  try {
    return await examine(dataSource);
  } finally {
    await dataSource.destroy();
  }
}

describe('the doctor behind PgBouncer', () => {
  let pool: PgBouncer;
  let close: () => Promise<void>;
  beforeAll(async () => {
    const opened = await freshDataSource('postgres', { migrations: outboxMigrations() });
    close = opened.close;
    await opened.dataSource.runMigrations();
    const { host, port, username, database } = opened.dataSource.options as { host: string; port: number; username: string; database: string };
    pool = await startPgBouncer({ host, port, user: username, database });
  });
  afterAll(async () => {
    await pool?.stop();
    await close?.();
  });

  const behind = (mode: string): Promise<Examined> => examineAt({ type: 'postgres', host: pool.host, port: pool.port, username: pool.user, database: mode });

  it('finds sessions that are given out by transaction', async () => {
    const { wrong, seen, healthy } = await behind('transaction');
    expect(wrong).toEqual({ 'connection.pooler': 'fault' });
    expect(seen('connection.pooler')).toContain('by transaction');
    expect(healthy).toBe(false);
  });

  it('finds sessions that are given out by statement', async () => {
    const { wrong, seen } = await behind('statement');
    expect(wrong['connection.pooler']).toBe('fault');
    expect(seen('connection.pooler')).toContain('by statement');
  });

  it('is content with a session for each connection', async () => {
    const { wrong, seen } = await behind('session');
    expect(wrong).toEqual({});
    expect(seen('connection.pooler')).toBe('a pool in between, in session mode');
  });
});

/** Proxies of MySQL greet their clients with a number of their own; there is none to be had here. */
describe.each(['mysql', 'mariadb'] as const)('the doctor behind a proxy of %s', (database) => {
  it('finds it', async () => {
    const { dataSource, close } = await freshDataSource(database, { migrations: outboxMigrations() });
    const { host, port } = dataSource.options as { host: string; port: number };
    const proxy = createServer((client) => {
      const server = connect({ host, port });
      server.once('data', (greeting: Buffer) => {
        // Behind length, number, protocol and the version, which ends with a zero.
        const place = greeting.indexOf(0, 5) + 1;
        greeting.writeUInt32LE(greeting.readUInt32LE(place) + 1_000_000, place);
        client.write(greeting);
        client.pipe(server).pipe(client);
      });
      client.on('error', () => server.destroy());
      server.on('error', () => client.destroy());
    });
    try {
      await dataSource.runMigrations();
      await once(proxy.listen(0, '127.0.0.1'), 'listening');
      const { wrong, seen } = await examineAt({ ...dataSource.options, host: '127.0.0.1', port: (proxy.address() as AddressInfo).port } as DataSourceOptions);
      expect(wrong).toEqual({ 'connection.pooler': 'warning' });
      expect(seen('connection.pooler')).toMatch(/a proxy in between: it said session 1\d{6}/);
    } finally {
      proxy.close();
      await close();
    }
  });
});
