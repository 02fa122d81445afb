import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { OutboxMessage } from '../../../libs/outbox/src/event/message';
import type { Claim, ClaimedMessage, Settlement } from '../../../libs/outbox/src/store/claim';
import type { DatabaseName } from '../../setup/databases';
import { ids, keyOfLane as keyInLane, message, StoreFixture, type FixtureOptions } from '../fixture';

const LANES = 8;
const LIMITS = { lanes: LANES, rows: 1000, bytes: 1_000_000 };

/** Keys that belong to the given lanes. */
const keyOfLane = (lane: number, nth = 0): string => keyInLane(lane, LANES, nth);

/** What becomes of messages that the broker refuses. */
export function describeRefusals(database: DatabaseName, options: FixtureOptions = {}): void {
  let f: StoreFixture;
  const add = (...messages: OutboxMessage[]): Promise<void> => f.add(...messages);
  const once: StoreFixture['once'] = (decide, limits = LIMITS) => f.once(decide, limits);
  const sendAll = (): Promise<readonly ClaimedMessage[]> => f.sendAll();

  beforeAll(async () => {
    f = await StoreFixture.open(database, LANES, options);
  });
  beforeEach(() => f.clear());
  afterAll(() => f.close());

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

  it('holds back the later messages of its key, and nothing else of its lane', async () => {
    const [bad, other] = [keyOfLane(3), keyOfLane(3, 1)];
    const [a1, a2, b1] = [message({ key: bad }), message({ key: bad }), message({ key: other })] as const;
    await add(a1, a2, b1);
    await once((claim) => later(refuse(a1)(claim)));
    const a3 = message({ key: bad });
    const b2 = message({ key: other });
    await add(a3, b2);
    expect(ids(await sendAll())).toEqual(ids([b2]));
    expect(await f.store.backlog(f.dataSource)).toMatchObject({ pending: 0, held: 3, dead: 0 });
    expect(await sendAll()).toEqual([]);
    await f.makeDue();
    const claimed = await sendAll();
    expect(ids(claimed)).toEqual(ids([a1, a2, a3]));
    expect(claimed.map(({ attempts }) => attempts)).toEqual([1, 0, 0]);
    expect(await f.store.backlog(f.dataSource)).toMatchObject({ pending: 0, held: 0 });
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
    // Its pause counts each time, though its followers could go.
    await once((claim) => later(refuse(a1)(claim)));
    expect(await sendAll()).toEqual([]);
    await f.makeDue();
    expect(ids(await sendAll())).toEqual(ids([a1, a2]));
  });

  it('is parked in the end, and its key goes on', async () => {
    const [a1, a2, a3] = [message(), message(), message()] as const;
    await add(a1, a2, a3);
    await once(refuse(a1));
    await once(() => ({}));
    await once(({ messages }) => ({ parked: messages.slice(0, 1).map((m) => ({ message: m, error: 'never', blocks: false })) }));
    expect(await f.store.backlog(f.dataSource)).toMatchObject({ held: 2, dead: 1 });
    expect(ids(await sendAll())).toEqual(ids([a2, a3]));
    expect(await f.store.backlog(f.dataSource)).toMatchObject({ pending: 0, held: 0, dead: 1 });
    const rows: unknown = await f.dataSource.query(
      `SELECT message_id, status, retry_count, last_error FROM ${f.store.dialect.tables.message} WHERE status = 2`,
    );
    expect(rows).toEqual([{ message_id: a1.messageId, status: 2, retry_count: 2, last_error: 'never' }]);
  });

  it('keeps the beginning of its error, however long that is', async () => {
    await add(message());
    await once(({ messages }) => ({ retried: messages.map((m) => ({ message: m, error: 'é'.repeat(100_000), delayMs: 0 })) }));
    const [row] = await f.query<{ last_error: string }>(`SELECT last_error FROM ${f.tables.message}`);
    expect(row?.last_error).toBe('é'.repeat(2000));
  });

  it('without a key holds back nobody', async () => {
    const [a, b] = [message({ key: null }), message({ key: null })] as const;
    await add(a, b);
    await once(({ messages }) => ({
      retried: messages.filter((m) => m.messageId === a.messageId).map((m) => ({ message: m, error: 'no', delayMs: 0 })),
      sent: messages.filter((m) => m.messageId === b.messageId),
    }));
    expect(ids(await sendAll())).toEqual(ids([a]));
    expect(await f.store.backlog(f.dataSource)).toMatchObject({ pending: 0, held: 0 });
  });
}
