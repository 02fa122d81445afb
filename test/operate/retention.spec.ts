import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { Outbox, TransactionRunner } from 'nestjs-transactional-outbox';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Cleaner } from '../../libs/outbox/src/operate/cleaner';
import { DEFAULT_RETENTION, type Retention } from '../../libs/outbox/src/operate/retention-options';
import { PooledClaimSessions, SerialClaimSessions } from '../../libs/outbox/src/relay/claim-sessions';
import { inTransaction } from '../../libs/outbox/src/store/connection';
import { purgeByTime, purgeSent } from '../../libs/outbox/src/store/purge';
import { until } from '../relay/fixture';
import { startApp } from '../setup/app';
import { DATABASES, type DatabaseName, SERVERS } from '../setup/databases';
import { NoteWritten } from '../setup/notes';
import { fillSent, refreshStatistics } from '../store/bulk';
import { CountingConnection } from '../store/counting-connection';
import { message, StoreFixture } from '../store/fixture';
import { openConnection } from '../store/sessions';
import { NOTHING_ELSE } from './partition-stage';

const DAY = 24 * 3600 * 1000;
const NOTHING = { sent: 0, ...NOTHING_ELSE };
const QUICK: Retention = { ...DEFAULT_RETENTION, batchSize: 10, pause: 0 };

function cleanerOf(f: StoreFixture, rules: Retention = QUICK): Cleaner {
  const open = () =>
    f.store.dialect.name === 'sqlite'
      ? new SerialClaimSessions(f.store, () => f.dataSource.createQueryRunner())
      : new PooledClaimSessions(f.store, f.dataSource.options, { workers: 0, sessionTimeout: 5000 });
  return new Cleaner(f.store, open, rules);
}

/** Lets rows of the log have happened so many days ago. */
async function age(f: StoreFixture, days: number, where = '1 = 1'): Promise<void> {
  const at = f.store.dialect.nowPlusMs;
  const ago = -days * DAY;
  await f.query(
    `UPDATE ${f.tables.message} SET created_at = ${at}, updated_at = ${at} WHERE ${where}`,
    [ago, ago],
  );
}

async function consumed(f: StoreFixture, table: 'consumed' | 'failure', days: number, count: number): Promise<void> {
  const { nowPlusMs } = f.store.dialect;
  const [columns, attempts] = table === 'consumed' ? ['consumed_at', ''] : ['updated_at, attempts', ', 1'];
  for (let i = 0; i < count; i++) {
    await f.query(`INSERT INTO ${f.tables[table]} (consumer, message_id, ${columns}) VALUES ('c', ?, ${nowPlusMs}${attempts})`, [`${days}-${i}`, -days * DAY]);
  }
}

/** Lets keys of a consumer have had their last event so many days ago. */
async function sequences(f: StoreFixture, consumer: string, days: number, keys: readonly string[]): Promise<void> {
  const { nowPlusMs } = f.store.dialect;
  for (const key of keys) {
    await f.query(`INSERT INTO ${f.tables.sequence} (consumer, sequence_key, last_place, updated_at) VALUES (?, ?, 7, ${nowPlusMs})`, [consumer, key, -days * DAY]);
  }
}

describe.each(DATABASES)('retention on %s', (database) => {
  let f: StoreFixture;
  beforeAll(async () => {
    f = await StoreFixture.open(database);
  });
  beforeEach(async () => {
    await f.clear();
    for (const table of [f.tables.history, f.tables.consumed, f.tables.failure, f.tables.sequence]) await f.query(`DELETE FROM ${table}`);
  });
  afterAll(() => f.close());

  /** 25 old sent ones, and of every other kind some that must stay. */
  async function history(): Promise<void> {
    for (const key of ['pending', 'dead']) await f.add(message({ key }));
    await f.once(({ messages }) => ({ parked: messages.filter(({ key }) => key === 'dead').map((dead) => ({ message: dead, error: 'no', blocks: false })) }));
    await f.add(...Array.from({ length: 25 }, () => message({ key: 'old' })));
    await f.once(({ messages }) => ({ sent: messages.filter(({ key }) => key === 'old') }));
    await f.sweep();
    await age(f, 8);
    await f.add(message({ key: 'young' }));
    await f.once(({ messages }) => ({ sent: messages.filter(({ key }) => key === 'young') }));
    await f.sweep();
  }
  const keys = async (table: 'message' | 'history') =>
    (await f.query<{ message_key: string }>(`SELECT message_key FROM ${f.tables[table]} ORDER BY id`)).map((row) => row.message_key);

  it('takes away what was sent long ago, and nothing else', async () => {
    await history();
    expect(await cleanerOf(f).pass(QUICK)).toEqual({ outcome: 'done', purged: { ...NOTHING, sent: 25 } });
    expect(await keys('message')).toEqual(['pending', 'dead', 'young']);
    expect([await f.count('pending'), await f.count('dead'), await f.count('history')]).toEqual([1, 1, 0]);
    // What waits is still sent.
    expect((await f.sendAll()).map(({ key }) => key)).toEqual(['pending']);
  });

  it('takes dead messages only when there is a rule for them', async () => {
    await history();
    expect((await cleanerOf(f).pass({ ...QUICK, dead: 9 * DAY })).purged.dead).toBe(0);
    expect((await cleanerOf(f).pass({ ...QUICK, dead: 7 * DAY })).purged.dead).toBe(1);
    expect(await keys('message')).toEqual(['pending', 'young']);
    expect(await f.count('dead')).toBe(0);
  });

  it('keeps a history where it is asked to, whole', async () => {
    await history();
    const before = await f.query(`SELECT * FROM ${f.tables.message} WHERE message_key IN ('old', 'dead') ORDER BY id`);
    await cleanerOf(f).pass({ ...QUICK, dead: 7 * DAY, mode: 'archive' });
    expect(await keys('message')).toEqual(['pending', 'young']);
    const after = await f.query(`SELECT * FROM ${f.tables.history} ORDER BY id`);
    expect(after.map(({ archived_at: _at, ...row }) => row)).toEqual(before);
  });

  it('archives all of a batch or nothing of it', async () => {
    await history();
    await f.query(`INSERT INTO ${f.tables.history} SELECT m.*, ${f.store.dialect.now} FROM ${f.tables.message} m WHERE message_key = 'old'`);
    await f.query(`DELETE FROM ${f.tables.history} WHERE id > (SELECT MIN(id) FROM ${f.tables.message} WHERE message_key = 'old')`);
    await expect(cleanerOf(f).pass({ ...QUICK, mode: 'archive' })).rejects.toThrow();
    expect(await keys('message')).toHaveLength(28);
    expect(await f.count('history')).toBe(1);
  });

  // K3
  it('forgets what consumers had long ago', async () => {
    for (const table of ['consumed', 'failure'] as const) {
      await consumed(f, table, 15, 25);
      await consumed(f, table, 8, 3);
    }
    expect((await cleanerOf(f).pass(QUICK)).purged).toEqual({ ...NOTHING, consumed: 25, failures: 25 });
    expect([await f.count('consumed'), await f.count('failure')]).toEqual([3, 3]);
    expect((await cleanerOf(f).pass({ ...QUICK, consumed: false, failures: 7 * DAY })).purged).toEqual({ ...NOTHING, failures: 3 });
  });

  it('forgets how far keys are only when there is a rule for it, and none that had an event since', async () => {
    const keys = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`);
    // Stretches of ten end within a consumer, between two, and beside keys that differ in little.
    await sequences(f, 'a', 31, [...keys('old', 13), 'k']);
    await sequences(f, 'a', 29, [...keys('young', 6), 'k ', 'K']);
    await sequences(f, 'a ', 31, keys('old', 10));
    await sequences(f, 'b', 29, keys('young', 12));
    await sequences(f, 'c', 31, keys('old', 3));
    expect((await cleanerOf(f).pass(QUICK)).purged).toEqual(NOTHING);
    const cleaner = cleanerOf(f);
    expect((await cleaner.pass({ ...QUICK, sequences: 30 * DAY })).purged).toEqual({ ...NOTHING, sequences: 27 });
    expect(cleaner.status().purged).toEqual({ ...NOTHING, sequences: 27 });
    const left = await f.query<{ consumer: string; sequence_key: string }>(`SELECT consumer, sequence_key FROM ${f.tables.sequence}`);
    expect(left.map(({ consumer, sequence_key }) => `${consumer}|${sequence_key}`).toSorted()).toEqual(
      [...[...keys('young', 6), 'k ', 'K'].map((key) => `a|${key}`), ...keys('young', 12).map((key) => `b|${key}`)].toSorted(),
    );
    // What the option warns of: a key that was forgotten takes an older event for new.
    const place = (key: string) => f.transaction((queryRunner) => f.store.advanceSequence(queryRunner, 'a', key, '3'));
    expect([await place('old1'), await place('young1')]).toEqual(['3', '7']);
  });

  it('takes archived messages away only when there is a rule for them', async () => {
    await history();
    await cleanerOf(f).pass({ ...QUICK, mode: 'archive' });
    await f.query(`UPDATE ${f.tables.history} SET archived_at = ${f.store.dialect.nowPlusMs}`, [-91 * DAY]);
    await f.query(`UPDATE ${f.tables.history} SET archived_at = ${f.store.dialect.now} WHERE id % 5 = 0`);
    const young = await f.count('history', 'id % 5 = 0');
    expect((await cleanerOf(f).pass(QUICK)).purged).toEqual(NOTHING);
    expect((await cleanerOf(f).pass({ ...QUICK, history: 90 * DAY })).purged).toEqual({ ...NOTHING, history: 25 - young });
    expect(await f.count('history')).toBe(young);
    expect(await keys('message')).toEqual(['pending', 'dead', 'young']);
  });

  it('ends with the process in the middle of a pass, and the next one goes on', async () => {
    await history();
    const cleaner = cleanerOf(f);
    let stopped: Promise<void> | undefined;
    const pass = await cleaner.pass({ ...QUICK, pause: 3_600_000 }, () => {
      stopped ??= Promise.resolve().then(() => cleaner.stop());
    });
    await stopped;
    expect(pass.outcome).toBe('stopped');
    expect(pass.purged.sent).toBeLessThan(25);
    expect((await cleanerOf(f).pass(QUICK)).purged.sent).toBe(25 - pass.purged.sent);
  });

  // K3
  it('is on by default, visible in the scheduler, and ends with the app', async () => {
    const start = (interval: number) => startApp(database, { imports: [ScheduleModule.forRoot()], outbox: { retention: { interval } } });
    const { app, dataSource, close } = await start(5);
    expect(app.get(SchedulerRegistry).getIntervals()).toContain('outbox-cleaner');
    await app.get(TransactionRunner).run(async () => app.get(Outbox).emit([NoteWritten.of(1), NoteWritten.of(2)]));
    const { nowPlusMs, bind } = f.store.dialect;
    await dataSource.query(bind(`UPDATE outbox_message SET status = 1, created_at = ${nowPlusMs}, updated_at = ${nowPlusMs} WHERE payload LIKE '%1%'`), [-8 * DAY, -8 * DAY]);
    const left = async () => ((await dataSource.query('SELECT id FROM outbox_message')) as unknown[]).length;
    await until(async () => (await left()) === 1);
    await close();
  });
});

describe.each(SERVERS)('cleaners beside others on %s', (database) => {
  let f: StoreFixture;
  beforeAll(async () => {
    f = await StoreFixture.open(database);
  });
  beforeEach(() => f.clear());
  afterAll(() => f.close());

  it('work one at a time, and the right to it dies with the connection', async () => {
    await fillSent(f, 1, 20);
    await age(f, 8);
    const other = await openConnection(f.store, f.dataSource);
    expect(await f.store.dialect.lockCleaner(other)).toBe(true);
    expect(await cleanerOf(f).pass(QUICK)).toMatchObject({ outcome: 'busy', purged: { sent: 0 } });
    await other.close();
    await until(async () => (await cleanerOf(f).pass(QUICK)).outcome === 'done');
    expect(await f.count('message')).toBe(0);
  });

  it('wait for no consumer that works on a key, and leave that key alone', async () => {
    await f.query(`DELETE FROM ${f.tables.sequence}`);
    await sequences(f, 'c', 31, Array.from({ length: 30 }, (_, i) => `k${i}`));
    await f.transaction(async (queryRunner) => {
      for (const key of ['k3', 'k4']) await f.store.advanceSequence(queryRunner, 'c', key, '8');
      expect((await cleanerOf(f).pass({ ...QUICK, sequences: 30 * DAY })).purged.sequences).toBe(28);
    });
    expect(await f.query(`SELECT sequence_key AS k, last_place AS place FROM ${f.tables.sequence} ORDER BY k`)).toEqual(
      ['k3', 'k4'].map((k) => ({ k, place: expect.toSatisfy((place) => Number(place) === 8) as unknown })),
    );
  });

  // K1: shown by locks, not by time
  it('lock the rows that they delete, and nothing that a business insert needs', async () => {
    await fillSent(f, 1, 50);
    await age(f, 8, 'id <= 30');
    await consumed(f, 'consumed', 15, 20);
    const cleaner = await openConnection(f.store, f.dataSource);
    const limits = { age: 7 * DAY, rows: 20 };
    await cleaner.begin();
    expect((await purgeSent(cleaner, f.store.dialect, '0', limits, 'delete')).purged).toBe(20);
    expect((await purgeByTime(cleaner, f.store.dialect, 'consumed', '0', limits)).purged).toBe(20);
    if (database === 'mysql') {
      const locks = await f.query<{ m: string; t: string; n: number }>(
        `SELECT LOCK_MODE AS m, OBJECT_NAME AS t, COUNT(*) AS n FROM performance_schema.data_locks
         WHERE OBJECT_SCHEMA = DATABASE() AND LOCK_TYPE = 'RECORD' AND INDEX_NAME = 'PRIMARY' GROUP BY LOCK_MODE, OBJECT_NAME ORDER BY t`,
      );
      expect(locks.map(({ m, t, n }) => `${t} ${m} ${n}`)).toEqual(['consumed_message X,REC_NOT_GAP 20', 'outbox_message X,REC_NOT_GAP 20']);
      expect(await f.query(`SELECT 1 FROM performance_schema.data_locks WHERE OBJECT_SCHEMA = DATABASE() AND LOCK_TYPE = 'RECORD' AND LOCK_MODE NOT LIKE '%REC_NOT_GAP'`)).toEqual([]);
    }
    if (database === 'postgres') {
      const locks = await f.query<{ mode: string }>(
        `SELECT DISTINCT l.mode AS mode FROM pg_locks l WHERE l.locktype IN ('relation', 'tuple', 'page') AND l.mode <> 'AccessShareLock'
         AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
      expect(locks).toEqual([{ mode: 'RowExclusiveLock' }]);
    }
    // A business transaction that must not wait at all: it would fail.
    await f.dataSource.transaction('REPEATABLE READ', async (manager) => {
      await manager.query(database === 'postgres' ? `SET LOCAL lock_timeout = '10ms'` : 'SET SESSION innodb_lock_wait_timeout = 1');
      await manager.query(`SELECT COUNT(*) FROM ${f.tables.message}`);
      if (!manager.queryRunner) throw new Error('no query runner');
      await f.store.add(manager.queryRunner, Array.from({ length: 20 }, (_, i) => message({ key: `k${i}` })));
      for (const id of ['0', '15-', '15-3x', 'z']) expect(await f.store.consume(manager.queryRunner, 'c', id)).toBe(true);
      // Rows beside those that go can be marked.
      await manager.query(`UPDATE ${f.tables.message} SET retry_count = 1 WHERE id IN (21, 30, 50)`);
      if (database !== 'postgres') await manager.query('SET SESSION innodb_lock_wait_timeout = DEFAULT');
    });
    await cleaner.commit();
    await cleaner.close();
  });

  // K5, E4: even without the right to clean
  it('do not fail on each other, nor on writers, relays and consumers', async () => {
    await f.query(`DELETE FROM ${f.tables.consumed}`);
    await consumed(f, 'consumed', 15, 300);
    await fillSent(f, 1, 3000);
    await age(f, 8);
    const cleaning = Array.from({ length: 3 }, async () => {
      const connection = await openConnection(f.store, f.dataSource);
      let purged = 0;
      for (let after: string | null = '0'; after !== null; ) {
        const batch = await inTransaction(connection, () => purgeSent(connection, f.store.dialect, String(after), { age: 7 * DAY, rows: 100 }, 'delete'));
        purged += batch.purged;
        after = batch.next;
      }
      await connection.close();
      return purged;
    });
    // Of two on one range, what one has taken is not there for the other.
    const forgetting = Array.from({ length: 2 }, async () => {
      const connection = await openConnection(f.store, f.dataSource);
      let purged = 0;
      for (let after: string | null = '0'; after !== null; ) {
        const batch = await inTransaction(connection, () => purgeByTime(connection, f.store.dialect, 'consumed', String(after), { age: 14 * DAY, rows: 20 }));
        purged += batch.purged;
        after = batch.next;
      }
      await connection.close();
      return purged;
    });
    const writing = (async () => {
      for (let i = 0; i < 40; i++) {
        expect(await f.transaction((queryRunner) => f.store.consume(queryRunner, 'c', `15-${i}-new`))).toBe(true);
        await f.add(...Array.from({ length: 5 }, (_, n) => message({ key: `k${n}` })));
        await f.sendAll();
        await f.sweep();
      }
    })();
    const [purged, forgot] = await Promise.all([Promise.all(cleaning), Promise.all(forgetting), writing]);
    expect(purged.reduce((sum, n) => sum + n, 0)).toBe(3000);
    expect(await f.count('message')).toBe(200);
    const forgotten = forgot.reduce((sum, n) => sum + n, 0);
    expect(forgotten + (await f.count('consumed'))).toBe(300 + 40);
    expect((await cleanerOf(f).pass(QUICK)).purged.consumed).toBe(300 - forgotten);
    expect(await f.count('consumed')).toBe(40);
  });
});

const HISTORY = 200_000;

describe.each(SERVERS)(`what a cleaner reads on %s, with ${HISTORY} rows of history`, (database: DatabaseName) => {
  it('is about what it deletes', async () => {
    const f = await StoreFixture.open(database);
    await fillSent(f, 1, HISTORY);
    await age(f, 8, 'id <= 5000');
    await refreshStatistics(f);
    const connection = new CountingConnection(await openConnection(f.store, f.dataSource, 60_000), database === 'postgres');
    const overhead = await connection.overhead();
    const rows = 1000;
    const reads: number[] = [];
    let purged = 0;
    for (let after: string | null = '0'; after !== null; ) {
      const before = database === 'postgres' ? 0 : await connection.reads();
      if (database === 'postgres') await connection.overhead();
      await connection.begin();
      const batch = await purgeSent(connection, f.store.dialect, after, { age: 7 * DAY, rows }, 'delete');
      reads.push((await connection.reads()) - before - overhead);
      await connection.commit();
      purged += batch.purged;
      after = batch.next;
    }
    expect(purged).toBe(5000);
    // One look and one delete for each batch, and one batch to see that the rest is young. MySQL counts the list of keys,
    // and each row of a joined DELETE twice.
    expect(reads).toHaveLength(6);
    expect(Math.max(...reads), `reads ${reads.join(', ')}`).toBeLessThanOrEqual(5 * rows + 100);
    for (const { sql, parameters } of connection.statements) {
      const plan = /^(SELECT|DELETE)/.test(sql) && !/pg_stat|@@/.test(sql) ? await connection.explain(sql, parameters) : '';
      expect(plan).not.toMatch(/Seq Scan on outbox_message|Sort|filesort/);
    }
    await connection.close();
    await f.close();
  });
});
