import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { OutboxAdmin } from 'nestjs-transactional-outbox';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { OutboxMessage } from '../../libs/outbox/src/event/message';
import { acknowledged, ScriptedPublishers } from '../relay/scripted-publisher';
import { until } from '../relay/fixture';
import { startApp } from '../setup/app';
import { DATABASES } from '../setup/databases';
import { keyOfLane, message, StoreFixture } from '../store/fixture';
import { BY, Operation } from './fixture';

describe.each(DATABASES)('an operator on %s', (database) => {
  let f: StoreFixture;
  let o: Operation;
  let admin: ReturnType<Operation['admin']>;

  beforeAll(async () => {
    f = await StoreFixture.open(database);
  });
  beforeEach(async () => {
    await f.clear();
    await f.query(`UPDATE ${f.tables.lane} SET paused = 0`);
    o = new Operation(f);
    admin = o.admin();
  });
  afterEach(async () => {
    await o.close();
    vi.restoreAllMocks();
  });
  afterAll(() => f.close());

  const add = async (key: string | null, ...payloads: string[]): Promise<OutboxMessage[]> => {
    const messages = payloads.map((payload) => message({ key, payload }));
    await f.add(...messages);
    return messages;
  };
  /** Parks the first of each key. */
  const park = (blocks = false) =>
    f.once(({ messages }) => ({ parked: messages.filter(({ key }, i) => messages.findIndex((m) => m.key === key) === i).map((m) => ({ message: m, error: 'REFUSED: no', blocks })) }));
  const sent = async (): Promise<(string | null)[]> => (await f.sendAll()).map(({ payload }) => payload);
  const state = async ({ messageId }: OutboxMessage) => (await f.store.statesOf(f.dataSource, [messageId])).get(messageId);

  it('requeues one to its place among those that wait', async () => {
    const [one, two] = await add('k', 'one', 'two', 'three');
    await park();
    if (!one || !two) throw new Error('nothing was written');
    expect(await admin.requeue(one.messageId, BY)).toEqual({ done: 1, notFound: [], skipped: [] });
    expect(await state(one)).toBe('pending');
    expect(await f.count('dead')).toBe(0);
    expect((await admin.show(one.messageId))?.attempts).toBe(0);
    expect(await sent()).toEqual(['one', 'two', 'three']);
  });

  it('requeues one that blocks its key, and the key goes on behind it', async () => {
    await add('k', 'one', 'two', 'three');
    await park(true);
    await add('k', 'four');
    expect(await sent()).toEqual([]);
    expect(await admin.stats()).toMatchObject({ dead: 1, topics: [{ topic: 'orders', blockedKeys: 1, dead: 1 }] });
    expect(await admin.requeue({ topic: 'orders', limit: 10 }, BY)).toMatchObject({ done: 1 });
    expect([...(await sent()), ...(await sent())]).toEqual(['one', 'two', 'three', 'four']);
    expect([await f.count('hold'), await f.count('held')]).toEqual([0, 0]);
  });

  it('discards a dead one that blocks its key, one that is held and one that is pending', async () => {
    const [one, two] = await add('k', 'one', 'two', 'three');
    await park(true);
    expect(await sent()).toEqual([]);
    const [free] = await add('free', 'free');
    const ids = [one, two, free].map((each) => String(each?.messageId));
    expect(await Promise.all([one, two, free].map((each) => state(each as OutboxMessage)))).toEqual(['dead', 'held', 'pending']);
    expect(await admin.discard(ids, { by: 'ben', reason: 'wrong amount' })).toEqual({ done: 3, notFound: [], skipped: [] });
    expect([...(await sent()), ...(await sent())]).toEqual(['three']);
    expect((await admin.find({ state: 'discarded' })).messages.map(({ lastError }) => lastError)).toEqual(Array.from({ length: 3 }, () => 'discarded by ben: wrong amount'));
    expect([await f.count('hold'), await f.count('held'), await f.count('pending'), await f.count('dead')]).toEqual([0, 0, 0, 0]);
    // It can be taken back.
    expect(await admin.requeue({ state: 'discarded', key: 'free', limit: 1 }, BY)).toMatchObject({ done: 1 });
    expect(await sent()).toEqual(['free']);
  });

  it('stops a key and lets it go on, and pauses do not get mixed up with it', async () => {
    await add('k', 'one');
    await admin.block('orders', 'k', BY);
    await add('k', 'two');
    await add('other', 'other');
    expect(await sent()).toEqual(['other']);
    await admin.pause(BY, 'orders');
    expect(await admin.release('orders', 'k', BY)).toBe(true);
    expect(await admin.release('orders', 'k', BY)).toBe(false);
    expect([...(await sent()), ...(await sent())]).toEqual([]);
    await admin.resume(BY, 'orders');
    expect([...(await sent()), ...(await sent())]).toEqual(['one', 'two']);
    expect([await f.count('hold'), await f.count('held')]).toEqual([0, 0]);
  });

  it('pauses a topic with all that waits in it, and no other', async () => {
    await add('retried', 'r1', 'r2');
    await f.once(({ messages }) => ({ retried: messages.slice(0, 1).map((m) => ({ message: m, error: 'no', delayMs: 0 })) }));
    await admin.pause(BY, 'orders');
    await add('k', 'k1');
    await f.add(message({ topic: 'bills', payload: 'bill' }));
    expect([...(await sent()), ...(await sent())]).toEqual(['bill']);
    expect(await admin.stats()).toMatchObject({ paused: false, topics: [{ topic: 'orders', paused: true, held: 3 }] });
    await admin.resume(BY, 'orders');
    const after = [...(await sent()), ...(await sent()), ...(await sent())];
    expect(after.filter((payload) => payload?.startsWith('r'))).toEqual(['r1', 'r2']);
    expect(after).toHaveLength(3);
    expect(await f.count('hold')).toBe(0);
  });

  it('pauses all relays, whatever wakes them, and a relay goes on with its next look', async () => {
    const { publishers, relay } = o.relays.start();
    await admin.pause(BY);
    expect(await admin.stats()).toMatchObject({ paused: true });
    await add('k', 'one');
    for (let i = 0; i < 5; i++) {
      relay.wake();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(publishers.tried).toEqual([]);
    await admin.resume(BY);
    await until(() => publishers.values.includes('one'));
  });

  it('replays what was sent in a period, with the same ids', async () => {
    const messages = await add('k', 'one', 'two');
    await sent();
    // What the sweeper has not marked yet is left alone.
    expect(await admin.replay({ topic: 'orders', limit: 10 }, BY)).toMatchObject({ done: 0, skipped: [{ state: 'sent' }, { state: 'sent' }] });
    await f.sweep();
    const hour = 3_600_000;
    expect(await admin.replay({ from: new Date(Date.now() + hour), limit: 10 }, BY)).toMatchObject({ done: 0 });
    expect(await admin.replay({ from: new Date(Date.now() - hour), to: new Date(Date.now() + hour), limit: 1 }, BY)).toMatchObject({ done: 1 });
    expect((await f.sendAll()).map(({ messageId }) => messageId)).toEqual([messages[0]?.messageId]);
    await f.sweep();
    expect(await Promise.all(messages.map(state))).toEqual(['sent', 'sent']);
  });

  it('is told what was not found and what an act does not apply to', async () => {
    const [one] = await add('k', 'one');
    const unknown = randomUUID();
    expect(await admin.requeue([String(one?.messageId), unknown, '999999', 'nonsense', String(one?.messageId)], BY)).toEqual({
      done: 0,
      notFound: ['nonsense', unknown, '999999'],
      skipped: [{ id: one?.messageId, state: 'pending' }],
    });
    expect(await admin.show(unknown)).toBeUndefined();
  });

  it('must say who and why, and what exactly', async () => {
    const invalid = { code: 'OUTBOX_OPERATION_INVALID' };
    await expect(admin.requeue('1', { by: '', reason: 'x' })).rejects.toMatchObject(invalid);
    await expect(admin.pause(undefined as never)).rejects.toMatchObject(invalid);
    const wrong = [
      () => admin.requeue({ topics: 'x', limit: 1 } as never, BY),
      () => admin.requeue({ topic: undefined, limit: 1 } as never, BY),
      () => admin.requeue({ topic: 'x' } as never, BY),
      () => admin.requeue({ state: 'sent', limit: 1 }, BY),
      () => admin.discard({ limit: 0 }, BY),
      () => admin.find({}, { limit: 1001 }),
      () => admin.find({}, { after: "1'" }),
      () => admin.find({ from: new Date('x') }),
      () => admin.block('no topic', 'k', BY),
      () => admin.block('orders', '', BY),
    ];
    for (const act of wrong) await expect(act()).rejects.toMatchObject(invalid);
    await expect(admin.purge(BY, { sent: -1 })).rejects.toMatchObject({ code: 'OUTBOX_OPTIONS_INVALID' });
  });

  it('finds by topic, key, type, state and time, page by page, and shows what a message says only when asked', async () => {
    await add('a', 'a1', 'a2', 'a3');
    const [b] = await add('b', 'b1');
    await f.add(message({ topic: 'bills', key: 'a', type: 'bill.sent', payload: 'bill' }));
    const all = await admin.find();
    expect(all.next).toBeNull();
    expect(all.messages).toHaveLength(5);
    const first = await admin.find({ topic: 'orders' }, { limit: 3 });
    const second = await admin.find({ topic: 'orders' }, { limit: 3, after: String(first.next) });
    expect([...first.messages, ...second.messages].map(({ key }) => key)).toEqual(['a', 'a', 'a', 'b']);
    expect((await admin.find({ key: 'a', type: 'bill.sent' })).messages).toMatchObject([{ topic: 'bills', state: 'pending', attempts: 0 }]);
    expect((await admin.find({ state: 'dead' })).messages).toEqual([]);
    expect((await admin.find({ to: new Date(Date.now() - 3_600_000) })).messages).toEqual([]);
    expect(await admin.show(String(b?.messageId))).not.toHaveProperty('payload');
    expect(await admin.show(String(b?.messageId), { content: true })).toMatchObject({ payload: 'b1', key: 'b' });
  });

  it('has every act written down, and is there in an app', async () => {
    const log = vi.spyOn(Logger.prototype, 'log').mockReturnValue();
    await add('k', 'one');
    await park();
    await admin.requeue({ limit: 5 }, { by: 'anna', reason: 'broker mended' });
    expect(log).toHaveBeenCalledWith({ act: 'requeue', by: 'anna', reason: 'broker mended', target: { limit: 5 }, result: { done: 1, notFound: [], skipped: [] } });
    const { app, close } = await startApp(database);
    const injected = app.get(OutboxAdmin);
    expect(await injected.stats()).toMatchObject({ pending: 0, topics: [] });
    expect(await injected.purge(BY)).toMatchObject({ outcome: 'done' });
    await injected.pause(BY);
    expect((await injected.stats()).paused).toBe(true);
    await close();
  });

  it('takes a great many in batches up to a limit, and says how far it is', async () => {
    await f.add(...Array.from({ length: 1200 }, (_, i) => message({ key: keyOfLane(i % f.store.lanes, f.store.lanes, i % 40) + i })));
    await f.once(({ messages }) => ({ parked: messages.map((m) => ({ message: m, error: 'no', blocks: false })) }), { lanes: f.store.lanes, rows: 5000, bytes: 1e8 });
    const steps: number[] = [];
    expect(await admin.requeue({ limit: 1100 }, BY, { onProgress: ({ done }) => steps.push(done) })).toMatchObject({ done: 1100 });
    expect(steps).toEqual([500, 1000, 1100]);
    expect([await f.count('dead'), await f.count('pending')]).toEqual([100, 1100]);
  });

  it('waits for what a relay is just sending: nothing is sent that was discarded, and nothing twice', async () => {
    const publishers = new ScriptedPublishers();
    const { reached, letGo } = publishers.hang();
    o.relays.start({ concurrency: 1, publishTimeout: 5000, sessionTimeout: 9000 }, publishers);
    const [one] = await add('k', 'one');
    await reached;
    const discarding = admin.discard(String(one?.messageId), BY);
    await new Promise((resolve) => setTimeout(resolve, 50));
    letGo((records) => records.map(() => acknowledged));
    expect(await discarding).toEqual({ done: 0, notFound: [], skipped: [{ id: one?.messageId, state: 'sent' }] });
    expect(publishers.values).toEqual(['one']);
  });
});
