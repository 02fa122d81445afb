import type { DataSource, QueryRunner } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { OutboxMessage } from '../../libs/outbox/src/event/message';
import type { Claim, ClaimedMessage, ClaimSession, Settlement } from '../../libs/outbox/src/store/claim';
import { detectDialect } from '../../libs/outbox/src/store/detect-dialect';
import { createTables } from '../../libs/outbox/src/store/migration';
import { OutboxStore } from '../../libs/outbox/src/store/outbox-store';
import { tableNames } from '../../libs/outbox/src/store/tables';
import { DATABASES, freshDataSource, SERVERS } from '../setup/databases';
import { ids, keyOfLane as keyInLane, message, NOTHING } from './fixture';
import { openClaimSession } from './sessions';

const LANES = 8;
const LIMITS = { lanes: LANES, rows: 1000, bytes: 1_000_000 };

/** Keys that belong to the given lanes. */
const keyOfLane = (lane: number, nth = 0): string => keyInLane(lane, LANES, nth);

async function inTransaction<T>(dataSource: DataSource, work: (queryRunner: QueryRunner) => Promise<T>): Promise<T> {
  return dataSource.transaction((manager) => {
    if (!manager.queryRunner) throw new Error('no query runner');
    return work(manager.queryRunner);
  });
}

describe.each(DATABASES)('store on %s', (database) => {
  let dataSource: DataSource;
  let close: () => Promise<void>;
  let store: OutboxStore;
  const sessions: ClaimSession[] = [];

  const add = (...messages: OutboxMessage[]): Promise<void> =>
    inTransaction(dataSource, (queryRunner) => store.add(queryRunner, messages));

  async function open(): Promise<ClaimSession> {
    const session = await openClaimSession(store, dataSource);
    sessions.push(session);
    return session;
  }

  /** Claims once, settles as told, and says what was claimed. */
  async function once(decide: (claim: Claim) => Partial<Settlement>, limits = LIMITS): Promise<readonly ClaimedMessage[]> {
    const session = await open();
    const claim = await session.claim(limits);
    if (!claim) return [];
    await session.settle({ ...NOTHING, ...decide(claim) });
    return claim.messages;
  }
  const sendAll = (): Promise<readonly ClaimedMessage[]> => once(({ messages }) => ({ sent: messages }));

  beforeAll(async () => {
    ({ dataSource, close } = await freshDataSource(database));
    const dialect = await detectDialect(dataSource.options, dataSource, tableNames({}));
    await createTables(dataSource, dialect, LANES);
    store = new OutboxStore(dialect, LANES, 'commit');
  });

  beforeEach(async () => {
    for (const session of sessions.splice(0)) await session.close();
    const { message: log, pending, hold, held, settled, dead, consumed } = store.dialect.tables;
    for (const table of [log, pending, hold, held, settled, dead, consumed]) await dataSource.query(`DELETE FROM ${table}`);
  });

  afterAll(async () => {
    for (const session of sessions.splice(0)) await session.close();
    await close();
  });

  it('can make its tables again, with nothing changed', async () => {
    await add(message());
    await createTables(dataSource, store.dialect, LANES);
    await store.check(dataSource);
    expect((await store.backlog(dataSource)).pending).toBe(1);
  });

  it('refuses tables that were made for another number of lanes', async () => {
    const other = new OutboxStore(store.dialect, LANES + 1, 'commit');
    await expect(other.check(dataSource)).rejects.toMatchObject({ code: 'OUTBOX_LANES_MISMATCH' });
  });

  it('says what to do when the tables are missing', async () => {
    const names = tableNames({ tables: { message: 'not_there' } });
    const dialect = await detectDialect(dataSource.options, dataSource, names);
    await expect(new OutboxStore(dialect, LANES, 'commit').check(dataSource)).rejects.toMatchObject({
      code: 'OUTBOX_TABLES_MISSING',
    });
  });

  it('gives back what was added, byte for byte and in order', async () => {
    const key = 'Schlüssel 🔑 ';
    const messages = [
      message({ key, payload: '{"b":1,"a":"😀"}', headers: { 'x-näme': 'wert ✓' }, tenantId: 't1', traceparent: '00-a-b-01' }),
      message({ key, payload: null }),
      message({ key, payload: '' }),
      message({ key, payload: JSON.stringify('x'.repeat(1_000_000)) }),
    ];
    await add(...messages);
    const claimed = await once(({ messages: sent }) => ({ sent }), { ...LIMITS, bytes: 10_000_000 });
    expect(claimed.map(({ id: _id, lane: _lane, createdAt: _at, attempts: _n, source: _s, bytes: _b, defect: _d, ...rest }) => rest)).toEqual(messages);
    expect(claimed.every(({ attempts, source }) => attempts === 0 && source === 'pending')).toBe(true);
  });

  // D13, and the session's time zone must not matter either.
  it('stamps messages with the database clock in UTC', async () => {
    await add(message());
    const [claimed] = await sendAll();
    expect(Math.abs((claimed?.createdAt ?? 0) - Date.now())).toBeLessThan(600_000);
  });

  it('adds thousands of messages in one transaction, in order', async () => {
    const messages = Array.from({ length: 2500 }, (_, i) => message({ payload: `${i}` }));
    await add(...messages);
    const claimed = await once(({ messages: sent }) => ({ sent }), { ...LIMITS, rows: 5000 });
    expect(ids(claimed)).toEqual(ids(messages));
    expect(await sendAll()).toEqual([]);
  });

  // D1
  it('works with ids that a JavaScript number cannot hold', async () => {
    const first = '9007199254740993';
    await dataSource.query(
      {
        mysql: `ALTER TABLE outbox_message AUTO_INCREMENT = ${first}`,
        mariadb: `ALTER TABLE outbox_message AUTO_INCREMENT = ${first}`,
        postgres: `ALTER TABLE outbox_message ALTER COLUMN id RESTART WITH ${first}`,
        sqlite: `UPDATE sqlite_sequence SET seq = ${first} - 1 WHERE name = 'outbox_message'`,
      }[database],
    );
    const messages = Array.from({ length: 5 }, () => message());
    await add(...messages);
    const claimed = await sendAll();
    expect(ids(claimed)).toEqual(ids(messages));
    expect(claimed.map(({ id }) => id)).toEqual(messages.map((_, i) => String(BigInt(first) + BigInt(i))));
    expect((await store.backlog(dataSource)).pending).toBe(0);
  });

  it('leaves what is not settled to be claimed again', async () => {
    const [a, b, c] = [message(), message(), message()] as const;
    await add(a, b, c);
    await once(({ messages }) => ({ sent: messages.slice(0, 1) }));
    expect(ids(await once(() => ({})))).toEqual(ids([b, c]));
    const session = await open();
    await session.claim(LIMITS);
    await session.release();
    expect(ids(await sendAll())).toEqual(ids([b, c]));
    expect(await store.backlog(dataSource)).toEqual({ pending: 0, held: 0, dead: 0, oldestAge: null });
  });

  it('bounds a claim by bytes, but always takes one message', async () => {
    const messages = Array.from({ length: 4 }, () => message({ payload: 'x'.repeat(1000) }));
    await add(...messages);
    const limits = { ...LIMITS, bytes: 2500 };
    expect(ids(await once(({ messages: sent }) => ({ sent }), limits))).toEqual(ids(messages.slice(0, 2)));
    expect(ids(await once(({ messages: sent }) => ({ sent }), { ...limits, bytes: 1 }))).toEqual(ids(messages.slice(2, 3)));
    expect((await store.backlog(dataSource)).pending).toBe(1);
  });

  describe('a refused message', () => {
    const refuse = (...refused: OutboxMessage[]) => ({ messages }: Claim): Partial<Settlement> => {
      const wanted = new Set(ids(refused));
      const stopped = new Set(refused.map(({ key }) => key));
      return {
        sent: messages.filter(({ messageId, key }) => !wanted.has(messageId) && !stopped.has(key)),
        retried: messages.filter(({ messageId }) => wanted.has(messageId)).map((m) => ({ message: m, error: 'no', delayMs: 0 })),
      };
    };
    const later = (settlement: Partial<Settlement>): Partial<Settlement> => ({
      ...settlement,
      retried: settlement.retried?.map((refused) => ({ ...refused, delayMs: 3_600_000 })) ?? [],
    });
    const makeDue = (): Promise<unknown> =>
      dataSource.query(`UPDATE ${store.dialect.tables.hold} SET retry_at = ${store.dialect.now}`);

    it('holds back the later messages of its key, and nothing else of its lane', async () => {
      const [bad, other] = [keyOfLane(3), keyOfLane(3, 1)];
      const [a1, a2, b1] = [message({ key: bad }), message({ key: bad }), message({ key: other })] as const;
      await add(a1, a2, b1);
      await once((claim) => later(refuse(a1)(claim)));
      const a3 = message({ key: bad });
      const b2 = message({ key: other });
      await add(a3, b2);
      expect(ids(await sendAll())).toEqual(ids([b2]));
      expect(await store.backlog(dataSource)).toMatchObject({ pending: 0, held: 3, dead: 0 });
      expect(await sendAll()).toEqual([]);
      await makeDue();
      const claimed = await sendAll();
      expect(ids(claimed)).toEqual(ids([a1, a2, a3]));
      expect(claimed.map(({ attempts }) => attempts)).toEqual([1, 0, 0]);
      expect(await store.backlog(dataSource)).toMatchObject({ pending: 0, held: 0 });
      await add(message({ key: bad }));
      expect(await sendAll()).toHaveLength(1);
    });

    it('can be refused again, and its followers wait on', async () => {
      const [a1, a2] = [message(), message()] as const;
      await add(a1, a2);
      await once(refuse(a1));
      expect(ids(await once((claim) => refuse(a1)(claim)))).toEqual(ids([a1]));
      // a2 has moved behind a1 by now.
      const again = await once((claim) => refuse(a1)(claim));
      expect(ids(again)).toEqual(ids([a1, a2]));
      expect(again.map(({ attempts }) => attempts)).toEqual([2, 0]);
      expect(ids(await sendAll())).toEqual(ids([a1, a2]));
    });

    it('is parked in the end, and its key goes on', async () => {
      const [a1, a2, a3] = [message(), message(), message()] as const;
      await add(a1, a2, a3);
      await once(refuse(a1));
      await once(() => ({}));
      await once(({ messages }) => ({ parked: messages.slice(0, 1).map((m) => ({ message: m, error: 'never', blocks: false })) }));
      expect(await store.backlog(dataSource)).toMatchObject({ held: 2, dead: 1 });
      expect(ids(await sendAll())).toEqual(ids([a2, a3]));
      expect(await store.backlog(dataSource)).toMatchObject({ pending: 0, held: 0, dead: 1 });
      const rows: unknown = await dataSource.query(
        `SELECT message_id, status, retry_count, last_error FROM ${store.dialect.tables.message} WHERE status = 2`,
      );
      expect(rows).toEqual([{ message_id: a1.messageId, status: 2, retry_count: 2, last_error: 'never' }]);
    });

    it('without a key holds back nobody', async () => {
      const [a, b] = [message({ key: null }), message({ key: null })] as const;
      await add(a, b);
      await once(({ messages }) => ({
        retried: messages.filter((m) => m.messageId === a.messageId).map((m) => ({ message: m, error: 'no', delayMs: 0 })),
        sent: messages.filter((m) => m.messageId === b.messageId),
      }));
      expect(ids(await sendAll())).toEqual(ids([a]));
      expect(await store.backlog(dataSource)).toMatchObject({ pending: 0, held: 0 });
    });
  });

  describe('consumed messages', () => {
    const consume = (consumer: string, id: string): Promise<boolean> =>
      inTransaction(dataSource, (queryRunner) => store.consume(queryRunner, consumer, id));

    it('are recognised by consumer and id, byte for byte', async () => {
      expect(await consume('a', 'id')).toBe(true);
      expect(await consume('a', 'id')).toBe(false);
      for (const [consumer, id] of [['b', 'id'], ['a', 'ID'], ['a', 'id '], ['a', 'íd'], ['a ', 'id']] as const) {
        expect(await consume(consumer, id), `${consumer}|${id}|`).toBe(true);
      }
    });

    // I1
    it('leave the transaction usable when they repeat', async () => {
      await consume('a', 'id');
      await inTransaction(dataSource, async (queryRunner) => {
        expect(await store.consume(queryRunner, 'a', 'id')).toBe(false);
        expect(await store.consume(queryRunner, 'a', 'other')).toBe(true);
      });
      expect(await consume('a', 'other')).toBe(false);
    });
  });
});

describe.each(SERVERS)('claims side by side on %s', (database) => {
  let dataSource: DataSource;
  let close: () => Promise<void>;
  let store: OutboxStore;
  let one: ClaimSession;
  let two: ClaimSession;

  beforeAll(async () => {
    ({ dataSource, close } = await freshDataSource(database));
    const dialect = await detectDialect(dataSource.options, dataSource, tableNames({}));
    await createTables(dataSource, dialect, LANES);
    store = new OutboxStore(dialect, LANES, 'commit');
    one = await openClaimSession(store, dataSource);
    two = await openClaimSession(store, dataSource);
  });
  afterAll(async () => {
    await one.close();
    await two.close();
    await close();
  });
  beforeEach(async () => {
    await one.release();
    await two.release();
    const { message: log, pending } = store.dialect.tables;
    for (const table of [log, pending]) await dataSource.query(`DELETE FROM ${table}`);
  });

  const add = (...messages: OutboxMessage[]): Promise<void> =>
    inTransaction(dataSource, (queryRunner) => store.add(queryRunner, messages));

  it('never take one lane twice, and do not wait for one another', async () => {
    await add(...Array.from({ length: LANES }, (_, lane) => message({ key: keyOfLane(lane) })));
    const first = await one.claim({ ...LIMITS, lanes: 3 });
    const second = await two.claim({ ...LIMITS, lanes: LANES });
    expect(first?.lanes).toHaveLength(3);
    expect(second?.lanes).toHaveLength(LANES - 3);
    expect(new Set([...(first?.lanes ?? []), ...(second?.lanes ?? [])]).size).toBe(LANES);
    expect(new Set(ids([...(first?.messages ?? []), ...(second?.messages ?? [])])).size).toBe(LANES);
    await two.settle({ ...NOTHING, sent: second?.messages ?? [] });
    expect(await two.claim(LIMITS)).toBeUndefined();
    await one.release();
    expect((await two.claim(LIMITS))?.messages).toHaveLength(3);
  });

  it('serve every lane in turn', async () => {
    const served = new Set<number>();
    for (let lane = 0; lane < LANES; lane++) {
      await add(...Array.from({ length: 20 }, () => message({ key: keyOfLane(lane) })));
    }
    for (let round = 0; round < LANES; round++) {
      const claim = await one.claim({ lanes: 1, rows: 1, bytes: 1000 });
      for (const lane of claim?.lanes ?? []) served.add(lane);
      await one.settle({ ...NOTHING, sent: claim?.messages ?? [] });
    }
    expect(served.size).toBe(LANES);
  });

  // J6
  it('send a message that committed late although later ids went before it', async () => {
    const late = dataSource.createQueryRunner();
    await late.startTransaction();
    const unordered = new OutboxStore(store.dialect, LANES, 'none');
    const [first, second] = [message(), message()] as const;
    await unordered.add(late, [first]);
    await inTransaction(dataSource, (queryRunner) => unordered.add(queryRunner, [second]));
    const claim = await one.claim(LIMITS);
    expect(ids(claim?.messages ?? [])).toEqual(ids([second]));
    await one.settle({ ...NOTHING, sent: claim?.messages ?? [] });
    await late.commitTransaction();
    await late.release();
    expect(ids((await one.claim(LIMITS))?.messages ?? [])).toEqual(ids([first]));
  });

  // E2
  it('do not stop writers, also while they are open', async () => {
    await add(message());
    await one.claim(LIMITS);
    await add(message(), message({ key: keyOfLane(2) }));
    expect((await store.backlog(dataSource)).pending).toBe(3);
  });
});

describe.each(SERVERS)('commit order on %s', (database) => {
  const WRITERS = 8;
  const TRANSACTIONS = 40;

  /** Writers on one key; says how many messages stand in the log before one that committed earlier. */
  async function swaps(order: 'commit' | 'none'): Promise<number> {
    const { dataSource, close } = await freshDataSource(database, { poolSize: WRITERS + 1 } as object);
    try {
      const dialect = await detectDialect(dataSource.options, dataSource, tableNames({}));
      await createTables(dataSource, dialect, LANES);
      const store = new OutboxStore(dialect, LANES, order);
      let clock = 0;
      const commits = new Map<string, { begun: number; ended: number }>();
      await Promise.all(
        Array.from({ length: WRITERS }, async () => {
          for (let i = 0; i < TRANSACTIONS; i++) {
            const one = message();
            await inTransaction(dataSource, async (queryRunner) => {
              await store.add(queryRunner, [one]);
              // Some take longer to get from their insert to their commit.
              if (Math.random() < 0.3) await new Promise((resolve) => setTimeout(resolve, 2));
              commits.set(one.messageId, { begun: ++clock, ended: 0 });
            });
            const times = commits.get(one.messageId);
            if (times) times.ended = ++clock;
          }
        }),
      );
      const rows = (await dataSource.query(`SELECT message_id FROM ${dialect.tables.message} ORDER BY id`)) as { message_id: string }[];
      const times = rows.map((row) => commits.get(row.message_id) ?? { begun: 0, ended: 0 });
      // A later id is out of order for certain when its commit was over before that of an earlier id began.
      return times.filter((time, i) => times.slice(i + 1).some((other) => other.ended < time.begun)).length;
    } finally {
      await close();
    }
  }

  it('is the order of ids for one key', async () => {
    expect(await swaps('commit')).toBe(0);
  });

  it('is not, when it is turned off', async () => {
    expect(await swaps('none')).toBeGreaterThan(0);
  });
});
