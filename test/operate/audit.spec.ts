import { Injectable } from '@nestjs/common';
import { IdempotentRunner, OutboxAdmin, Transactional } from 'nestjs-transactional-outbox';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startApp } from '../setup/app';
import { DATABASES, SERVERS } from '../setup/databases';
import { message, StoreFixture } from '../store/fixture';
import { Operation } from './fixture';

const ANNA = { by: 'anna', reason: 'stock service is mended' };
const BEN = { by: 'ben', reason: 'wrong prices' };
const DAY = 24 * 3600 * 1000;

@Injectable()
class Nightwatch {
  constructor(private readonly admin: OutboxAdmin) {}

  @Transactional()
  async pauseAndFail(): Promise<void> {
    await this.admin.pause(ANNA, 'orders');
    throw new Error('something else');
  }
}

describe.each(DATABASES)('the audit on %s', (database) => {
  let f: StoreFixture;
  let o: Operation;
  let admin: ReturnType<Operation['admin']>;

  beforeAll(async () => {
    f = await StoreFixture.open(database);
  });
  beforeEach(async () => {
    await f.clear();
    for (const table of [f.tables.auditMessage, f.tables.audit]) await f.query(`DELETE FROM ${table}`);
    o = new Operation(f);
    admin = o.admin();
  });
  afterEach(() => o.close());
  afterAll(() => f.close());

  /** So many dead messages, each of a key of its own. */
  async function dead(count: number): Promise<string[]> {
    const messages = Array.from({ length: count }, (_, i) => message({ key: `k${i}` }));
    await f.add(...messages);
    await f.once((claim) => ({ parked: claim.messages.map((m) => ({ message: m, error: 'no', blocks: false })) }));
    return messages.map(({ messageId }) => messageId);
  }

  it('remembers every act: who, why, on what, and what has come of it', async () => {
    const [one, two] = await dead(3);
    await admin.requeue([String(one), '999999'], ANNA);
    await admin.discard({ topic: 'orders', key: 'k1', limit: 10 }, BEN);
    await admin.block('orders', 'k', ANNA);
    expect(await admin.release('orders', 'k', BEN)).toBe(true);
    expect(await admin.release('orders', 'k', BEN)).toBe(false);
    await admin.pause(ANNA);
    await admin.resume(ANNA);
    await admin.purge(BEN, { dead: false });
    await admin.requeue({ topic: 'nowhere', limit: 1 }, ANNA);
    await expect(admin.requeue({ limit: 1 }, { by: 'x'.repeat(191), reason: 'r' })).rejects.toMatchObject({ code: 'OUTBOX_OPERATION_INVALID' });
    await expect(admin.requeue({ limit: 1 }, { by: 'anna', reason: ' ' })).rejects.toMatchObject({ code: 'OUTBOX_OPERATION_INVALID' });

    const { acts, next } = await admin.audit();
    expect(next).toBeNull();
    expect(acts.every(({ outcome, beganAt, endedAt }) => outcome === 'done' && beganAt instanceof Date && endedAt instanceof Date && endedAt >= beganAt)).toBe(true);
    expect(acts.map(({ act, by, reason, target, result }) => ({ act, by, reason, target, result })).toReversed()).toEqual([
      { act: 'requeue', ...ANNA, target: { ids: [one, '999999'] }, result: { done: 1, notFound: ['999999'], skipped: [] } },
      { act: 'discard', ...BEN, target: { topic: 'orders', key: 'k1', limit: 10 }, result: { done: 1, notFound: [], skipped: [] } },
      { act: 'block', ...ANNA, target: { topic: 'orders', key: 'k' }, result: null },
      { act: 'release', ...BEN, target: { topic: 'orders', key: 'k' }, result: true },
      { act: 'release', ...BEN, target: { topic: 'orders', key: 'k' }, result: false },
      { act: 'pause', ...ANNA, target: { relays: 'all' }, result: null },
      { act: 'resume', ...ANNA, target: { relays: 'all' }, result: null },
      { act: 'purge', ...BEN, target: { dead: false }, result: { outcome: 'done', purged: { sent: 0, dead: 0, consumed: 0, failures: 0, audit: 0, sequences: 0, history: 0 } } },
      { act: 'requeue', ...ANNA, target: { topic: 'nowhere', limit: 1 }, result: { done: 0, notFound: [], skipped: [] } },
    ]);

    const firsts = await admin.audit({}, { limit: 4 });
    const rest = await admin.audit({}, { limit: 5, before: String(firsts.next) });
    expect([...firsts.acts, ...rest.acts]).toEqual(acts);
    expect(rest.next).toBeNull();
    const named = async (...args: Parameters<OutboxAdmin['audit']>) => (await admin.audit(...args)).acts.map(({ act }) => act);
    expect(await named({ by: 'ben', act: 'release' })).toEqual(['release', 'release']);
    expect(await named({ message: String(two) })).toEqual(['discard']);
    const [{ id } = { id: '' }] = (await admin.find({ key: 'k0' })).messages;
    expect(await named({ message: id })).toEqual(['requeue']);
    expect(await named({ message: '999999' })).toEqual([]);
    expect(await named({ to: new Date((acts[0]?.beganAt ?? new Date()).getTime() + 1), from: new Date(0), act: 'purge' })).toEqual(['purge']);
    expect(await named({ from: new Date(Date.now() + DAY) })).toEqual([]);
    await expect(admin.audit({ who: 'anna' } as object)).rejects.toMatchObject({ code: 'OUTBOX_OPERATION_INVALID' });
    await expect(admin.audit({}, { before: 'x' })).rejects.toMatchObject({ code: 'OUTBOX_OPERATION_INVALID' });
  });

  it('is written in the transaction of the act: where it cannot be, nothing is done', async () => {
    await dead(2);
    const { auditMessage } = f.tables;
    const moved = auditMessage.replace('outbox_audit_message', 'elsewhere');
    await f.query(`ALTER TABLE ${auditMessage} RENAME TO ${moved}`);
    try {
      await expect(admin.requeue({ limit: 10 }, ANNA)).rejects.toThrow();
      expect([await f.count('dead'), await f.count('pending')]).toEqual([2, 0]);
    } finally {
      await f.query(`ALTER TABLE ${moved} RENAME TO ${auditMessage}`);
    }
    const [failed] = (await admin.audit()).acts;
    expect(failed).toMatchObject({ act: 'requeue', outcome: 'failed', result: { error: expect.any(String) as unknown } });
    expect(failed?.result).not.toHaveProperty('done');
    expect(await f.count('auditMessage')).toBe(0);
  });

  it('says of an act that breaks off what was done before', async () => {
    const ids = await dead(501);
    const broken = admin.requeue(ids, ANNA, {
      onProgress: () => {
        throw new Error('the terminal is gone');
      },
    });
    await expect(broken).rejects.toThrow('the terminal is gone');
    expect(await f.count('pending')).toBe(500);
    expect((await admin.audit()).acts).toMatchObject([{ outcome: 'failed', result: { done: 500, error: 'the terminal is gone' } }]);
    expect(await f.count('auditMessage')).toBe(500);
    expect((await admin.audit({ message: String(ids[0]) })).acts).toHaveLength(1);
    expect((await admin.audit({ message: String(ids[500]) })).acts).toHaveLength(0);
  });

  it('goes by a rule of its own, with the messages of its acts', async () => {
    await admin.requeue(await dead(7), ANNA);
    const { nowPlusMs } = f.store.dialect;
    await f.query(`UPDATE ${f.tables.audit} SET began_at = ${nowPlusMs}`, [-400 * DAY]);
    await admin.block('orders', 'k', BEN);
    await f.query(`UPDATE ${f.tables.audit} SET began_at = ${nowPlusMs} WHERE act = 'block'`, [-300 * DAY]);
    expect((await admin.purge(ANNA, { audit: false })).purged.audit).toBe(0);
    expect((await admin.purge(ANNA, { batchSize: 3, pause: 1 })).purged.audit).toBe(1);
    expect(await f.count('auditMessage')).toBe(0);
    expect((await admin.audit()).acts.map(({ act }) => act)).toEqual(['purge', 'purge', 'block']);
  });
});

describe.each(SERVERS)('the audit in an app on %s', (database) => {
  it('stays when a transaction around the act rolls back, as the act does', async () => {
    const test = await startApp(database, { providers: [Nightwatch] });
    try {
      await expect(test.app.get(Nightwatch).pauseAndFail()).rejects.toThrow('something else');
      const admin = test.app.get(OutboxAdmin);
      expect((await admin.audit()).acts).toMatchObject([{ act: 'pause', outcome: 'done', target: { topic: 'orders' } }]);
      expect((await admin.stats()).topics).toMatchObject([{ topic: 'orders', paused: true }]);
    } finally {
      await test.close();
    }
  });
});

describe.each(SERVERS)('an act that takes longer than the server lets a connection be silent, on %s', (database) => {
  it('ends well, and is written down', async () => {
    const t = await startApp(database, { outbox: { relay: { enabled: false, publishTimeout: 500, sessionTimeout: 2500 } } });
    try {
      for (const id of ['one', 'two']) await t.app.get(IdempotentRunner).run('reader', id, async () => undefined);
      const admin = t.app.get(OutboxAdmin);
      const { purged } = await admin.purge(ANNA, { consumed: 0, batchSize: 1, pause: 4000 });
      expect(purged.consumed).toBe(2);
      expect((await admin.audit()).acts).toMatchObject([{ act: 'purge', outcome: 'done', result: { outcome: 'done', purged } }]);
    } finally {
      await t.close();
    }
  });
});
