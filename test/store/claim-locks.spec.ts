import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { mysqlDialect } from '../../libs/outbox/src/store/mysql.dialect';
import { tableNames } from '../../libs/outbox/src/store/tables';
import { type DatabaseName, SERVERS } from '../setup/databases';
import { ids, keyOfLane, message, NOTHING, refuse, StoreFixture } from './fixture';

const LANES = 8;
const LIMITS = { lanes: LANES, rows: 1000, bytes: 1e6 };
const oldMysql = { skipLocked: false, noPad: true, jsonTable: false };

/** The servers as they are, and MySQL and MariaDB as if they were too old for SKIP LOCKED. */
const KINDS: readonly { readonly kind: string; readonly database: DatabaseName; readonly old: boolean }[] = [
  ...SERVERS.map((database) => ({ kind: database, database, old: false })),
  { kind: 'an old mysql', database: 'mysql', old: true },
  { kind: 'an old mariadb', database: 'mariadb', old: true },
];

describe.each(KINDS)('what an open claim locks on $kind', ({ database, old }) => {
  let f: StoreFixture;
  beforeAll(async () => {
    f = await StoreFixture.open(database, LANES, {
      adapt: (dialect) => (old && dialect.name !== 'postgres' && dialect.name !== 'sqlite' ? mysqlDialect(dialect.name, tableNames({}), oldMysql) : dialect),
    });
  });
  beforeEach(() => f.clear());
  afterAll(() => f.close());

  const oneOfEachLane = () => Array.from({ length: LANES }, (_, lane) => message({ key: keyOfLane(lane, LANES) }));

  it('is lanes, and nothing that a writer or another relay needs', async () => {
    await f.add(...oneOfEachLane());
    // One key is held and met again: what follows it is moved when the claim is settled, not while it is open.
    await f.once(({ messages }) => ({ retried: messages.slice(0, 1).map(refuse(3_600_000)), sent: messages.slice(1) }));
    await f.add(...oneOfEachLane());
    const [one, two] = [await f.session(), await f.session()];
    const claim = await one.claim({ ...LIMITS, lanes: 5 });
    expect(claim?.lanes).toHaveLength(5);
    if (database === 'mysql') {
      const locks = await f.query<{ t: string; m: string }>(
        `SELECT DISTINCT OBJECT_NAME AS t, LOCK_TYPE AS m FROM performance_schema.data_locks WHERE OBJECT_SCHEMA = DATABASE() AND LOCK_TYPE = 'RECORD'`,
      );
      expect(locks.map(({ t }) => t)).toEqual(old ? [] : ['outbox_lane']);
    }
    if (database === 'postgres') {
      const idle = await f.query(`SELECT backend_xid, backend_xmin FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`);
      expect(idle).toEqual([{ backend_xid: null, backend_xmin: null }]);
      expect(await f.query(`SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE l.locktype = 'tuple' OR l.mode LIKE '%Exclusive%' AND l.locktype = 'relation' AND c.relname LIKE 'outbox%' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`)).toEqual([]);
    }
    // Writers at REPEATABLE READ go through, E2, and so does another relay.
    await f.dataSource.transaction('REPEATABLE READ', async (manager) => {
      await manager.query(`SELECT COUNT(*) FROM ${f.tables.pending}`);
      if (!manager.queryRunner) throw new Error('no query runner');
      await f.store.add(manager.queryRunner, oneOfEachLane());
    });
    const other = await two.claim(LIMITS);
    expect(other?.lanes).toHaveLength(LANES - 5);
    expect(new Set([...(claim?.lanes ?? []), ...(other?.lanes ?? [])]).size).toBe(LANES);
    await two.settle({ ...NOTHING, sent: other?.messages ?? [] });
    await one.settle({ ...NOTHING, sent: claim?.messages ?? [] });
    // What came in while the claims were open is there for the next.
    const rest = await f.sendAll();
    expect(rest.length).toBeGreaterThanOrEqual(4);
  });

  it('is free again after it was settled, given back, or its connection was closed', async () => {
    await f.add(...oneOfEachLane());
    const [one, two] = [await f.session(), await f.session()];
    await one.claim(LIMITS);
    expect(await two.claim(LIMITS)).toBeUndefined();
    await one.release();
    expect((await two.claim(LIMITS))?.lanes).toHaveLength(LANES);
    expect(await one.claim(LIMITS)).toBeUndefined();
    await two.close();
    // The server notices in its own time, and may free one lane after the other.
    for (let lanes = 0; lanes < LANES; ) {
      const again = await one.claim(LIMITS);
      if (!again) continue;
      await one.settle({ ...NOTHING, sent: again.messages });
      lanes += again.lanes.length;
    }
    const three = await f.session();
    expect(await three.claim(LIMITS)).toBeUndefined();
    await f.add(...oneOfEachLane());
    expect((await three.claim(LIMITS))?.lanes).toHaveLength(LANES);
  });

  // E4
  it('never makes relays, sweepers and writers deadlock', async () => {
    const sent: string[] = [];
    const added: string[] = [];
    const state = { writing: true };
    const writers = Array.from({ length: 2 }, async (_, writer) => {
      for (let i = 0; i < 25; i++) {
        const messages = Array.from({ length: 10 }, (_, n) => message({ key: `k${(writer + n * 7 + i) % 40}` }));
        await f.add(...messages);
        added.push(...ids(messages));
      }
    });
    const workers = Array.from({ length: 3 }, async (_, worker) => {
      const session = await f.session();
      for (let round = 0; state.writing || (await f.count('pending')) + (await f.count('held')) > 0; round++) {
        const claim = await session.claim({ lanes: 3, rows: 20, bytes: 1e6 });
        if (!claim) continue;
        const refused = round % 5 === worker ? claim.messages.slice(0, 1) : [];
        const stopped = new Set(refused.map(({ key }) => key));
        const acknowledged = claim.messages.filter(({ key }) => !stopped.has(key));
        await session.settle({ ...NOTHING, sent: acknowledged, retried: refused.map(refuse()) });
        sent.push(...ids(acknowledged));
      }
    });
    const sweeper = (async () => {
      while (state.writing) await f.sweep();
    })();
    await Promise.all(writers);
    state.writing = false;
    await Promise.all([...workers, sweeper]);
    expect(sent.length).toBe(added.length);
    expect(new Set(sent)).toEqual(new Set(added));
  });
});
