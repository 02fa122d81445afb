import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PublishOutcome } from '../../libs/outbox/src/publish/publisher';
import { message, StoreFixture } from '../store/fixture';
import { Relays, until } from './fixture';
import { acknowledged, ScriptedPublishers } from './scripted-publisher';

/** One lane: what stands first in it stands before all. */
const LANES = 1;

describe.each(['mysql', 'postgres', 'sqlite'] as const)('a topic that takes nothing, on %s', (database) => {
  let f: StoreFixture;
  let relays: Relays;
  beforeAll(async () => {
    f = await StoreFixture.open(database, LANES);
    relays = new Relays(f);
  });
  beforeEach(() => {
    vi.spyOn(Logger.prototype, 'error').mockReturnValue();
    vi.spyOn(Logger.prototype, 'log').mockReturnValue();
  });
  afterEach(async () => {
    await relays.stopAll();
    await f.clear();
    vi.restoreAllMocks();
  });
  afterAll(() => f.close());

  it.each(['NOT_ENOUGH_REPLICAS', 'ROUTE_AWAY', 'LEADER_NOT_AVAILABLE', 'KAFKA_STORAGE_ERROR'])(
    'lets the others pass, though more of it than a batch stands before them: %s',
    async (code) => {
      const stuck = Array.from({ length: 40 }, (_, n) => message({ topic: 'stuck', key: `k${n % 3}`, payload: `${n}` }));
      await f.add(...stuck, message({ topic: 'open', payload: 'other' }));
      const publishers = new ScriptedPublishers();
      const failed: PublishOutcome = { status: 'unknown', failure: { code, message: 'not now' } };
      let recovered = false;
      publishers.answer = (records) => records.map(({ topic }) => (topic === 'stuck' && !recovered ? failed : acknowledged));
      const { relay } = relays.start({ batchSize: 8, maxAttempts: 1 }, publishers);
      await until(() => publishers.values.includes('other'));
      expect(relay.status().unavailableTopics).toEqual([{ topic: 'stuck', error: `${code}: not now` }]);
      expect(await f.count('message', 'retry_count > 0 OR last_error IS NOT NULL')).toBe(0);
      recovered = true;
      await until(async () => (await f.count('pending')) + (await f.count('held')) === 0);
      for (const key of ['k0', 'k1', 'k2']) {
        const wanted = stuck.filter((one) => one.key === key).map(({ payload }) => payload);
        expect(publishers.published.filter((one) => one.key === key).map(({ value }) => value)).toEqual(wanted);
      }
      await until(() => relay.status().unavailableTopics.length === 0);
    },
  );

  it('writes nothing for a leader that is away for a moment', async () => {
    await f.add(message({ topic: 'stuck', payload: 'x' }));
    const publishers = new ScriptedPublishers();
    let tries = 0;
    publishers.answer = (records) =>
      records.map(() => (++tries > 2 ? acknowledged : { status: 'unknown', failure: { code: 'LEADER_NOT_AVAILABLE', message: 'not now' } }));
    const { relay } = relays.start({ concurrency: 1 }, publishers);
    const held: unknown[] = [];
    relay.on('held', (event) => held.push(event));
    await until(() => publishers.values.includes('x'));
    expect(held).toEqual([]);
  });
});
