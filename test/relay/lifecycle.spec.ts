import { Logger } from '@nestjs/common';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { Outbox, OutboxEvent, OutboxHealth, Relay, TransactionRunner } from 'nestjs-transactional-outbox';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { detectDialect } from '../../libs/outbox/src/store/detect-dialect';
import { createTables } from '../../libs/outbox/src/store/migration';
import { OutboxStore } from '../../libs/outbox/src/store/outbox-store';
import { tableNames } from '../../libs/outbox/src/store/tables';
import { PooledClaimSessions } from '../../libs/outbox/src/relay/claim-sessions';
import { Relay as SourceRelay } from '../../libs/outbox/src/relay/relay';
import { DEFAULT_RELAY_OPTIONS } from '../../libs/outbox/src/relay/relay-options';
import { startOwn } from '../services/index.mjs';
import { startApp } from '../setup/app';
import { message } from '../store/fixture';
import { buildChild, RelayChild } from './child';
import { QUICK, until } from './fixture';
import { acknowledged, ScriptedPublishers } from './scripted-publisher';

@OutboxEvent({ type: 'ticked', topic: 'ticks', key: (e: Ticked) => e.key })
class Ticked {
  constructor(readonly key: string) {}
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe.each(['mysql', 'sqlite'] as const)('a relay in an app on %s', (database) => {
  // B1, B4
  it('has one timer, never two batches of a worker at once, and leaves nothing behind', async () => {
    const publishers = new ScriptedPublishers();
    let [running, most] = [0, 0];
    publishers.answer = async (records) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 100));
      running--;
      return records.map(() => acknowledged);
    };
    const timersBefore = process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
    const { app, close } = await startApp(database, {
      imports: [ScheduleModule.forRoot()],
      outbox: { publisher: publishers.factory, relay: { pollInterval: 5, concurrency: 1 } },
    });
    expect(app.get(SchedulerRegistry).getIntervals().toSorted()).toEqual(['outbox-cleaner', 'outbox-relay']);
    const [runner, outbox] = [app.get(TransactionRunner), app.get(Outbox)];
    for (let i = 0; i < 10; i++) await runner.run(async () => outbox.emit(Array.from({ length: 5 }, (_, k) => new Ticked(`k${k}`))));
    await until(() => publishers.published.length === 50);
    expect(most).toBe(1);
    expect(new Set(publishers.published.map(({ messageId }) => messageId)).size).toBe(50);
    expect((await app.get(OutboxHealth).check()).relay.running).toBe(true);
    await close();
    const tried = publishers.tried.length;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(publishers.tried).toHaveLength(tried);
    expect(publishers.journal.at(-1)).toBe('close');
    expect(process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length).toBeLessThanOrEqual(timersBefore);
  });

  it('wakes at once when something commits in its process', async () => {
    const publishers = new ScriptedPublishers();
    const { app, close } = await startApp(database, { outbox: { publisher: publishers.factory, relay: { pollInterval: 3_600_000 } } });
    await until(() => app.get(Relay).status().lastSuccessAt !== null);
    await app.get(TransactionRunner).run(async () => app.get(Outbox).emit(new Ticked('k')));
    await until(() => publishers.published.length === 1);
    await close();
  });
});

describe('a relay in another process, which does not poll, on postgres', () => {
  let built: Awaited<ReturnType<typeof buildChild>>;
  beforeAll(async () => {
    built = await buildChild();
  });
  afterAll(() => built.remove());

  it('hears of commits, and hears again after its session was ended', async () => {
    const { app, dataSource, close } = await startApp('postgres');
    const lanes = 64;
    const child = new RelayChild(built.file, { dataSource: connectionOf(dataSource), lanes, relay: {}, publishMs: 0, pollMs: 3_600_000 });
    const listeners = async (): Promise<number[]> => {
      const rows = await dataSource.query<{ pid: number }[]>(
        `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN outbox_%' AND state = 'idle'`,
      );
      return rows.map(({ pid }) => pid);
    };
    const settled = (): number => child.lines.filter((line) => line.startsWith('settled 1')).length;
    const emit = (): Promise<void> => app.get(TransactionRunner).run(async () => app.get(Outbox).emit(new Ticked('k')));
    try {
      await until(async () => (await listeners()).length === 1);
      await emit();
      await until(() => settled() === 1);
      const [first] = await listeners();
      await dataSource.query(`SELECT pg_terminate_backend($1)`, [first]);
      // Committed while nobody listens: found when somebody does again.
      await emit();
      await until(() => settled() === 2);
      expect(await listeners()).not.toEqual([first]);
      await emit();
      await until(() => settled() === 3);
    } finally {
      await child.end();
      await close();
    }
  });

  it('costs one signal at a time, however many commits there are', async () => {
    const { app, dataSource, close } = await startApp('postgres');
    const query = vi.spyOn(dataSource, 'query');
    const [runner, outbox] = [app.get(TransactionRunner), app.get(Outbox)];
    const unsignalled = new Set<unknown>();
    let most = 0;
    query.mockImplementation(async () => {
      const one = {};
      unsignalled.add(one);
      most = Math.max(most, unsignalled.size);
      await new Promise((resolve) => setTimeout(resolve, 20));
      unsignalled.delete(one);
      return [] as never;
    });
    await Promise.all(Array.from({ length: 50 }, (_, i) => runner.run(async () => outbox.emit(new Ticked(`k${i}`)))));
    await until(() => unsignalled.size === 0);
    const signals = query.mock.calls.map(([statement]) => statement);
    query.mockRestore();
    await close();
    expect(new Set(signals.map((statement) => /^SET LOCAL synchronous_commit = off; NOTIFY outbox_\d+$/.test(statement)))).toEqual(new Set([true]));
    expect(most).toBe(1);
    expect(signals.length).toBeLessThan(50);
  });
});

/** What it takes to connect to the same database. */
function connectionOf({ options }: DataSource): DataSourceOptions {
  return { ...options, entities: [], synchronize: false } as DataSourceOptions;
}

describe('a relay whose database is killed and comes back', () => {
  // B6, J12
  it('publishes again by itself, and has logged the trouble', async () => {
    const errors = vi.spyOn(Logger.prototype, 'error').mockReturnValue();
    vi.spyOn(Logger.prototype, 'log').mockReturnValue();
    const server = await startOwn('mariadb', { log: () => undefined });
    const { host, port, user, password, database } = server.info;
    const options: DataSourceOptions = { type: 'mariadb', host, port, username: user, password, database };
    const connect = () => new DataSource(options).initialize();
    const add = async (payload: string): Promise<void> => {
      const app = await connect();
      await app.transaction(async (manager) => {
        if (manager.queryRunner) await store.add(manager.queryRunner, [message({ payload })]);
      });
      await app.destroy();
    };
    const admin = await connect();
    const dialect = await detectDialect(options, admin, tableNames({}));
    await createTables(admin, dialect, 8);
    await admin.destroy();
    const store = new OutboxStore(dialect, 8, 'commit');
    const relayOptions = { ...DEFAULT_RELAY_OPTIONS, ...QUICK };
    const publishers = new ScriptedPublishers();
    const relay = new SourceRelay(new PooledClaimSessions(store, options, { workers: 2, sessionTimeout: 2500 }), publishers.factory, store, relayOptions);
    relay.start();
    const poll = setInterval(() => relay.poll(), 20);
    try {
      await add('before');
      await until(() => publishers.values.includes('before'));
      await server.kill('SIGKILL');
      await until(() => relay.status().trouble?.stage === 'database');
      await server.restart();
      await add('after');
      await until(() => publishers.values.includes('after'));
      await until(() => relay.status().trouble === null);
      expect(errors).toHaveBeenCalled();
      expect(errors.mock.calls.length).toBeLessThan(8);
    } finally {
      clearInterval(poll);
      await relay.stop();
      await server.remove();
    }
  });
});
