import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Claim, Settlement } from '../../libs/outbox/src/store/claim';
import { findLost } from '../../libs/outbox/src/store/message-state';
import { DATABASES } from '../setup/databases';
import { ids, keyOfLane, message, refuse, StoreFixture } from './fixture';

const LANES = 8;

describe.each(DATABASES)('what becomes of a message on %s', (database) => {
  let f: StoreFixture;
  beforeAll(async () => {
    f = await StoreFixture.open(database, LANES);
  });
  beforeEach(() => f.clear());
  afterAll(() => f.close());

  const statuses = async (): Promise<number[]> =>
    (await f.query<{ status: number }>(`SELECT status FROM ${f.tables.message} ORDER BY id`)).map(({ status }) => Number(status));
  const lost = async (): Promise<number> =>
    (await findLost(f.dataSource, f.store.dialect, LANES, '0', 10_000)).lost.length;

  it('is seen at once, before and after the log is brought up to date', async () => {
    const [sent, held, follower, dead, pending, none] = [
      message({ key: 'sent' }),
      message({ key: 'held' }),
      message({ key: 'held' }),
      message({ key: 'dead' }),
      message({ key: 'pending' }),
      message({ key: null }),
    ] as const;
    await f.add(sent, held, follower, dead, none);
    await f.once(({ messages }) => ({
      sent: messages.filter((m) => m.key === 'sent'),
      retried: messages.filter((m) => m.messageId === held.messageId || m.key === null).map(refuse(3_600_000)),
      parked: messages.filter((m) => m.key === 'dead').map((m) => ({ message: m, error: 'never', blocks: false })),
    }));
    await f.add(pending);
    const states = () => f.store.statesOf(f.dataSource, [...ids([sent, held, follower, dead, pending, none]), 'not there']);
    const expected = new Map([
      [sent.messageId, 'sent'],
      [held.messageId, 'held'],
      [follower.messageId, 'pending'],
      [dead.messageId, 'dead'],
      [pending.messageId, 'pending'],
      [none.messageId, 'held'],
    ]);
    expect(await states()).toEqual(expected);
    await f.once(() => ({}));
    expect(await states()).toEqual(expected.set(follower.messageId, 'held'));
    expect(await f.sweep()).toBe(1);
    expect(await states()).toEqual(expected);
    expect(await lost()).toBe(0);
  });

  it('is marked in the log by the sweeper, and nothing else is', async () => {
    await f.add(...Array.from({ length: 5 }, (_, i) => message({ key: `k${i}` })));
    await f.once(({ messages }) => ({
      sent: messages.slice(0, 2),
      retried: messages.slice(2, 3).map(refuse(3_600_000)),
      parked: messages.slice(3, 4).map((m) => ({ message: m, error: 'never', blocks: false })),
    }));
    expect(await statuses()).not.toContain(1);
    expect(await f.sweep()).toBe(2);
    expect((await statuses()).sort()).toEqual([0, 0, 1, 1, 2]);
    expect(await f.count('message', '(status = 1) <> (sent_at IS NOT NULL)')).toBe(0);
    expect(await f.sweep()).toBe(0);
    expect(await f.count('settled')).toBe(0);
  });

  // J6, J16
  it('is deleted from the log by the sweeper where that is asked for, and nothing else is', async () => {
    await f.add(...Array.from({ length: 4 }, (_, i) => message({ key: `k${i}` })));
    const claimed = await f.once(({ messages }) => ({
      sent: messages.slice(0, 2),
      retried: messages.slice(2, 3).map(refuse(3_600_000)),
    }));
    expect(await f.count('message')).toBe(4);
    expect(await f.sweep('delete')).toBe(2);
    const left = await f.query<{ message_id: string }>(`SELECT message_id FROM ${f.tables.message} ORDER BY id`);
    expect(left.map((row) => row.message_id).sort()).toEqual(ids(claimed.slice(2)).sort());
    expect(await lost()).toBe(0);
  });

  it('is marked batch by batch, each with the time at which it was sent', async () => {
    for (let i = 0; i < 6; i++) {
      await f.add(message());
      await f.sendAll();
    }
    expect(await f.sweep()).toBe(6);
    expect(await f.count('settled')).toBe(0);
    const times = await f.query<{ n: number | string }>(`SELECT COUNT(DISTINCT sent_at) AS n FROM ${f.tables.message}`);
    expect(Number(times[0]?.n)).toBeGreaterThan(1);
  });

  it('is marked some thousands at a time, so that no transaction is long', async () => {
    for (let i = 0; i < 2; i++) {
      await f.add(...Array.from({ length: 2500 }, (_, n) => message({ key: `k${n}` })));
      await f.once(({ messages }) => ({ sent: messages }), { lanes: f.store.lanes, rows: 2500, bytes: 10_000_000 });
    }
    const batches = await f.count('settled');
    expect(batches).toBeGreaterThan(1);
    expect(await f.sweep()).toBeLessThan(5000);
    expect(await f.count('settled')).toBeGreaterThan(0);
    expect(await f.count('settled')).toBeLessThan(batches);
  });

  it('is an error when the message is in no state', async () => {
    const messages = Array.from({ length: 6 }, (_, i) => message({ key: `k${i}` }));
    await f.add(...messages);
    const [first] = await f.query<{ id: string }>(`SELECT ${f.store.dialect.idText('MIN(id)')} AS id FROM ${f.tables.message}`);
    await f.query(`DELETE FROM ${f.tables.pending} WHERE id = ${first?.id}`);
    await f.sendAll();
    expect(await findLost(f.dataSource, f.store.dialect, LANES, '0', 1000)).toMatchObject({ lost: [first?.id] });
    await f.sweep();
    const found = await findLost(f.dataSource, f.store.dialect, LANES, '0', 1000);
    expect(found.lost).toEqual([first?.id]);
    expect(await findLost(f.dataSource, f.store.dialect, LANES, found.next ?? '', 1000)).toEqual({ lost: [], next: null });
    expect((await statuses()).filter((status) => status === 0)).toHaveLength(1);
    expect([...(await f.store.statesOf(f.dataSource, ids(messages))).values()]).toEqual(['lost', ...Array.from({ length: 5 }, () => 'sent')]);
  });

  it('is forgotten when somebody has deleted its row, and no lane is stuck behind it', async () => {
    const [gone, held, other] = [message({ key: 'a' }), message({ key: 'b' }), message({ key: 'c' })] as const;
    await f.add(held);
    await f.once(({ messages }) => ({ retried: messages.map(refuse()) }));
    await f.add(gone, other);
    await f.query(`DELETE FROM ${f.tables.message} WHERE message_id IN (?, ?)`, ids([gone, held]));
    const session = await f.session();
    const claim = await session.claim({ lanes: LANES, rows: 100, bytes: 1e6 });
    expect(claim?.orphans).toHaveLength(2);
    await session.settle({ sent: claim?.messages ?? [], retried: [], parked: [], waiting: [] });
    expect(ids(claim?.messages ?? [])).toEqual(ids([other]));
    expect(await f.store.backlog(f.dataSource)).toMatchObject({ pending: 0, held: 0 });
    expect(await f.count('hold')).toBe(0);
  });

  it('is claimed with a defect when its headers cannot be read', async () => {
    await f.add(message());
    await f.query(`UPDATE ${f.tables.message} SET headers = '{oops'`);
    const [claimed] = await f.sendAll();
    expect(claimed?.defect).toMatch(/headers/);
  });

  it('cannot be settled by who has lost its lanes', async () => {
    const [a, b] = [message({ key: 'a' }), message({ key: 'a' })] as const;
    await f.add(a, b);
    const session = await f.session();
    const claim = await session.claim({ lanes: LANES, rows: 100, bytes: 1e6 });
    // As if another had sent the first of them.
    const [first] = claim?.messages ?? [];
    await f.query(`DELETE FROM ${f.tables.pending} WHERE id = ${first?.id}`);
    await expect(session.settle({ sent: claim?.messages ?? [], retried: [], parked: [], waiting: [] })).rejects.toMatchObject({
      name: 'ClaimLostError',
    });
    await session.close();
    expect(await f.count('pending')).toBe(1);
    expect(await f.count('settled')).toBe(0);
  });

  describe('of a topic that does not exist', () => {
    const waitFor = (topic: string) => ({ messages }: Claim): Partial<Settlement> => ({
      sent: messages.filter((m) => m.topic !== topic),
      waiting: messages.filter((m) => m.topic === topic).map((m) => ({ message: m, delayMs: 3_600_000 })),
    });

    it('waits with all others of the topic, in order, and others of its lanes go on', async () => {
      const [k, l] = [keyOfLane(2, LANES), keyOfLane(2, LANES, 1)];
      const other = keyOfLane(2, LANES, 0, 'missing');
      const missing = (key: string): ReturnType<typeof message> => message({ topic: 'missing', key });
      const m = [missing(other), missing(keyOfLane(2, LANES, 1, 'missing')), missing(other)] as const;
      await f.add(m[0], message({ key: k }), m[1]);
      expect(await f.once(waitFor('missing'))).toHaveLength(3);
      const later = message({ key: l });
      await f.add(m[2], later);
      expect(ids(await f.once(waitFor('missing')))).toEqual(ids([later]));
      expect(await f.store.backlog(f.dataSource)).toMatchObject({ pending: 0, held: 3 });
      expect(await f.query(`SELECT retry_count FROM ${f.tables.message} WHERE retry_count > 0`)).toEqual([]);
      expect(await f.count('hold')).toBe(1);
      await f.makeDue();
      expect(ids(await f.sendAll())).toEqual(ids(m));
      expect(await f.count('hold')).toBe(0);
      const next = missing(other);
      await f.add(next);
      expect(ids(await f.sendAll())).toEqual(ids([next]));
    });

    it('keeps its order when one of the key is refused besides', async () => {
      const key = keyOfLane(1, LANES, 0, 'missing');
      const one = () => message({ topic: 'missing', key });
      const [m1, m2, m3, m4, m5] = [one(), one(), one(), one(), one()] as const;
      await f.add(m1, m2);
      await f.once(waitFor('missing'));
      await f.add(m3);
      await f.makeDue();
      // m1 is refused now that the topic is there; m2 and m3 are behind it, wherever they wait.
      const [first] = await f.once(({ messages }) => ({ retried: messages.slice(0, 1).map(refuse(3_600_000)) }));
      expect(first?.messageId).toBe(m1.messageId);
      await f.add(m4);
      expect(await f.sendAll()).toEqual([]);
      await f.add(m5);
      expect(await f.sendAll()).toEqual([]);
      const sent: string[] = [];
      for (let i = 0; i < 6; i++) {
        await f.makeDue();
        sent.push(...ids(await f.sendAll()));
      }
      expect(sent).toEqual(ids([m1, m2, m3, m4, m5]));
      expect(await f.count('hold')).toBe(0);
      expect(await f.count('held')).toBe(0);
    });
  });

  it('keeps its order where a claim reaches only a part of what waits with its topic, and its key is held besides', async () => {
    const key = keyOfLane(1, LANES, 0, 'missing');
    const m = Array.from({ length: 8 }, (_, i) => message({ topic: 'missing', key, payload: `${i}` }));
    const limits = { lanes: LANES, rows: 2, bytes: 1e6 };
    await f.add(...m.slice(0, 4));
    await f.once(({ messages }) => ({ waiting: messages.map((one) => ({ message: one, delayMs: 0 })) }));
    await f.once(({ messages }) => ({ retried: messages.slice(0, 1).map(refuse(3_600_000)) }), { ...limits, rows: 1 });
    await f.add(...m.slice(4));
    for (let i = 0; i < 3; i++) expect(await f.once(({ messages }) => ({ sent: messages }), limits)).toEqual([]);
    const sent: string[] = [];
    for (let i = 0; i < 20; i++) {
      await f.makeDue();
      sent.push(...ids(await f.once(({ messages }) => ({ sent: messages }), limits)));
    }
    expect(sent).toEqual(ids(m));
  });

  it('blocks its key when it is given up and the option says so, until an operator decides', async () => {
    const [a1, a2, b] = [message({ key: 'a' }), message({ key: 'a' }), message({ key: 'b' })] as const;
    await f.add(a1, a2, b);
    await f.once(({ messages }) => ({
      parked: messages.filter((m) => m.messageId === a1.messageId).map((m) => ({ message: m, error: 'never', blocks: true })),
      sent: messages.filter((m) => m.key === 'b'),
    }));
    expect(await f.sendAll()).toEqual([]);
    await f.makeDue();
    expect(await f.sendAll()).toEqual([]);
    expect(await f.store.backlog(f.dataSource)).toMatchObject({ pending: 0, held: 1, dead: 1 });
    await f.query(`UPDATE ${f.tables.hold} SET state = 'retry', retry_at = ${f.store.dialect.now}`);
    expect(ids(await f.sendAll())).toEqual(ids([a2]));
    expect(await f.count('hold')).toBe(0);
    // Nothing waits behind one without a key.
    await f.add(message({ key: null }));
    await f.once(({ messages }) => ({ parked: messages.map((m) => ({ message: m, error: 'never', blocks: true })) }));
    expect(await f.count('hold')).toBe(0);
  });

  it('does not overtake an earlier one that is too large for the claim', async () => {
    const m = [100, 5000, 100, 100].map((size) => message({ payload: 'x'.repeat(size) }));
    await f.add(...m);
    const limits = { lanes: LANES, rows: 100, bytes: 1000 };
    const batches: string[][] = [];
    for (let i = 0; i < 3; i++) batches.push(ids(await f.once(({ messages }) => ({ sent: messages }), limits)));
    expect(batches).toEqual([ids(m.slice(0, 1)), ids(m.slice(1, 2)), ids(m.slice(2))]);
  });

  it('waits behind its key in a lane with more holds than a claim looks at', async () => {
    const keys = Array.from({ length: 6 }, (_, i) => keyOfLane(3, LANES, i));
    await f.add(...keys.map((key) => message({ key })));
    await f.once(({ messages }) => ({ retried: messages.map(refuse(3_600_000)) }));
    const free = message({ key: keyOfLane(3, LANES, 6) });
    await f.add(...keys.map((key) => message({ key })), free);
    const sent: string[] = [];
    for (let i = 0; i < 4; i++) sent.push(...ids(await f.once(({ messages }) => ({ sent: messages }), { lanes: 1, rows: 4, bytes: 1e6 })));
    expect(sent).toEqual([free.messageId]);
    expect(await f.count('held')).toBe(12);
  });

  it('goes on when many keys are refused at once, each in its order', async () => {
    const keys = Array.from({ length: 300 }, (_, i) => `key-${i}`);
    await f.add(...keys.map((key) => message({ key })));
    await f.once(({ messages }) => ({ retried: messages.map(refuse()) }));
    const followers = keys.map((key) => message({ key }));
    await f.add(...followers);
    const seen = new Map<string, number[]>();
    for (let i = 0; i < 40 && (await f.count('hold')) + (await f.count('pending')) > 0; i++) {
      for (const { key, attempts } of await f.sendAll()) seen.set(key ?? '', [...(seen.get(key ?? '') ?? []), attempts]);
    }
    expect(seen.size).toBe(300);
    expect(new Set([...seen.values()].map(String))).toEqual(new Set(['1,0']));
    expect(await f.store.backlog(f.dataSource)).toMatchObject({ pending: 0, held: 0, dead: 0 });
  });

  it('is taken from few full lanes as from many', async () => {
    const key = keyOfLane(3, LANES);
    await f.add(...Array.from({ length: 100 }, (_, i) => message({ key, payload: `${i}` })), message({ key: keyOfLane(4, LANES) }));
    const claimed = await f.once(({ messages }) => ({ sent: messages }), { lanes: LANES, rows: 80, bytes: 1e6 });
    expect(claimed.length).toBeGreaterThan(70);
    expect(claimed.length).toBeLessThanOrEqual(80);
    const ofKey = claimed.filter((m) => m.key === key).map(({ payload }) => Number(payload));
    expect(ofKey).toEqual(ofKey.map((_, i) => i));
  });
});
