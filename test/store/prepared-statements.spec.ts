import { randomUUID } from 'node:crypto';
import type { LoggerService } from '@nestjs/common';
import { IdempotentRunner, Outbox, TransactionRunner } from 'nestjs-transactional-outbox';
import { type BeforeQueryEvent, DataSource, type DataSourceOptions, type EntitySubscriberInterface, EventSubscriber, type Logger } from 'typeorm';
import { afterEach, describe, expect, it } from 'vitest';
import { detectDialect } from '../../libs/outbox/src/store/detect-dialect';
import { createTables } from '../../libs/outbox/src/store/migration';
import { OutboxStore } from '../../libs/outbox/src/store/outbox-store';
import { tableNames } from '../../libs/outbox/src/store/tables';
import { startPgBouncer } from '../services/pgbouncer.mjs';
import { startApp, type TestApp, type TestAppOptions } from '../setup/app';
import { freshDataSource } from '../setup/databases';
import { message } from './fixture';

const PREPARED = `SELECT name FROM pg_prepared_statements WHERE name LIKE 'outbox_%'`;

const heard: string[] = [];

@EventSubscriber()
class Listener implements EntitySubscriberInterface {
  beforeQuery({ query }: BeforeQueryEvent): void {
    heard.push(query.slice(0));
  }
}

describe('statements that PostgreSQL prepares', () => {
  let t: TestApp;
  afterEach(() => t?.close());

  /** An app with one connection, so that all that it does is in one session. */
  async function start(options: TestAppOptions = {}): Promise<void> {
    t = await startApp('postgres', { ...options, dataSource: { poolSize: 1, ...options.dataSource } });
  }

  const emit = (n: number): Promise<void> =>
    t.app.get(TransactionRunner).run(async () => t.app.get(Outbox).emitRaw({ topic: 't', type: 'x', key: 'k', payload: `{"n":${n}}` }));
  const consume = (messageId: string): Promise<boolean> =>
    t.app.get(IdempotentRunner).run('reader', messageId, async () => undefined).then(({ duplicate }) => !duplicate);

  it('are one for each kind of work, however often it is done', async () => {
    await start();
    for (let n = 0; n < 8; n++) {
      await emit(n);
      expect(await consume(`id-${n}`)).toBe(true);
      expect(await consume(`id-${n}`)).toBe(false);
    }
    expect(await t.logged()).toEqual(Array.from({ length: 8 }, (_, n) => ({ n })));
    expect(await t.dataSource.query(PREPARED)).toHaveLength(2);
  });

  it('have a text for loggers and subscribers, as all others', async () => {
    const logged: string[] = [];
    const logQuery = (query: string): void => void logged.push(`${query.trim().replace(/\s+/g, ' ').toLowerCase()} | ${query.length > 0} | ${query}`);
    const nothing = (): void => undefined;
    const logger: Logger = { logQuery, logQueryError: nothing, logQuerySlow: nothing, logSchemaBuild: nothing, logMigration: nothing, log: nothing };
    await start({ dataSource: { logging: true, logger, subscribers: [Listener] } });
    await emit(1);
    for (const seen of [logged, heard]) expect(seen.some((text) => /insert into "outbox_message"/i.test(text))).toBe(true);
    expect(logged.find((text) => text.includes('"outbox_message" (message_id'))).toMatch(/\| true \| WITH locks/);
  });

  it.each(['advanced-console', 'simple-console', 'formatted-console', 'debug'] as const)('pass through the %s logger of TypeORM', async (logger) => {
    const { log, info, debug } = console;
    Object.assign(console, { log: () => undefined, info: () => undefined, debug: () => undefined });
    try {
      await start({ dataSource: { logging: true, logger } });
      await emit(1);
      expect(await t.logged()).toEqual([{ n: 1 }]);
    } finally {
      Object.assign(console, { log, info, debug });
    }
  });

  it('are prepared no more once the server has forgotten them: one transaction is rolled back, and it is said', async () => {
    const warnings: string[] = [];
    const logger: LoggerService = { log: () => undefined, error: () => undefined, warn: (text: unknown) => void warnings.push(String(text)) };
    await start({ logger });
    await emit(1);
    await t.dataSource.query('DISCARD ALL');
    await expect(emit(2)).rejects.toMatchObject({ code: '26000' });
    for (let n = 3; n < 6; n++) await emit(n);
    expect(await consume('id')).toBe(true);
    expect(await t.logged()).toEqual([{ n: 1 }, { n: 3 }, { n: 4 }, { n: 5 }]);
    expect(warnings.filter((text) => text.includes('forgotten a prepared statement'))).toHaveLength(1);
  });

  it('follow the search path, and tables that were made anew', async () => {
    await start();
    const { dataSource } = t;
    const dialect = await detectDialect(dataSource.options, dataSource, tableNames({}));
    for (const schema of ['one', 'two']) {
      await dataSource.query(`CREATE SCHEMA ${schema}`);
      await dataSource.query(`SET search_path = ${schema}`);
      await createTables(dataSource, dialect, 64);
    }
    for (let n = 0; n < 12; n++) {
      await dataSource.query(`SET search_path = ${n % 3 === 0 ? 'two' : 'one'}`);
      await emit(n);
    }
    const numbers = async (schema: string): Promise<number[]> =>
      ((await dataSource.query(`SELECT payload FROM ${schema}.outbox_message ORDER BY id`)) as { payload: string }[]).map(({ payload }) => (JSON.parse(payload) as { n: number }).n);
    expect(await numbers('two')).toEqual([0, 3, 6, 9]);
    expect(await numbers('one')).toEqual([1, 2, 4, 5, 7, 8, 10, 11]);
    await dataSource.query('SET search_path = one');
    for (const statement of dialect.dropTables()) await dataSource.query(statement);
    await createTables(dataSource, dialect, 64);
    await emit(20);
    expect(await numbers('one')).toEqual([20]);
  });
});

describe('behind PgBouncer', () => {
  it.each(['transaction', 'session'])('nothing is prepared, and everything works: pool mode %s', async (mode) => {
    const { dataSource, close } = await freshDataSource('postgres');
    const { host, port, username: user, database } = dataSource.options as { host: string; port: number; username: string; database: string };
    const pool = await startPgBouncer({ host, port, user, database });
    const pooled = new DataSource({ type: 'postgres', host: pool.host, port: pool.port, username: pool.user, database: mode, poolSize: 4 } as DataSourceOptions);
    try {
      await pooled.initialize();
      const dialect = await detectDialect(pooled.options, pooled, tableNames({}));
      await createTables(pooled, dialect, 64);
      const store = new OutboxStore(dialect, 64, 'commit');
      const write = (n: number): Promise<boolean> =>
        pooled.transaction(async ({ queryRunner }) => {
          if (!queryRunner) throw new Error('no query runner');
          await store.add(queryRunner, [message({ key: `k${n}`, messageId: randomUUID() })]);
          return store.consume(queryRunner, 'reader', `id-${n}`);
        });
      const outcomes = await Promise.all(Array.from({ length: 40 }, (_, n) => write(n)));
      expect(outcomes).not.toContain(false);
      const [{ n } = { n: 0 }] = (await dataSource.query('SELECT COUNT(*)::int AS n FROM outbox_pending')) as { n: number }[];
      expect(n).toBe(40);
      expect(await pooled.query(PREPARED)).toEqual([]);
    } finally {
      if (pooled.isInitialized) await pooled.destroy();
      await pool.stop();
      await close();
    }
  });
});
