import { describe, expect, it } from 'vitest';
import type { PublishOutcome } from '../../libs/outbox/src/publish/publisher';
import { message } from '../store/fixture';
import { until } from './fixture';
import { RelayStage } from './relay-stage';
import { acknowledged, ScriptedPublishers } from './scripted-publisher';

/** One lane: what stands first in it stands before all. */
const LANES = 1;

describe.each(['mysql', 'postgres', 'sqlite'] as const)('a topic that takes nothing, on %s', (database) => {
  const stage = RelayStage.use(database, LANES);

  it.each(['NOT_ENOUGH_REPLICAS', 'ROUTE_AWAY', 'LEADER_NOT_AVAILABLE', 'KAFKA_STORAGE_ERROR'])(
    'lets the others pass, though more of it than a batch stands before them: %s',
    async (code) => {
      const stuck = Array.from({ length: 40 }, (_, n) => message({ topic: 'stuck', key: `k${n % 3}`, payload: `${n}` }));
      await stage.f.add(...stuck, message({ topic: 'open', payload: 'other' }));
      const publishers = new ScriptedPublishers();
      const failed: PublishOutcome = { status: 'unknown', failure: { code, message: 'not now' } };
      let recovered = false;
      publishers.answer = (records) => records.map(({ topic }) => (topic === 'stuck' && !recovered ? failed : acknowledged));
      const { relay } = stage.relays.start({ batchSize: 8, maxAttempts: 1 }, publishers);
      await until(() => publishers.values.includes('other'));
      expect(relay.status().unavailableTopics).toEqual([{ topic: 'stuck', error: `${code}: not now` }]);
      expect(await stage.f.count('message', 'retry_count > 0 OR last_error IS NOT NULL')).toBe(0);
      recovered = true;
      await until(async () => (await stage.f.count('pending')) + (await stage.f.count('held')) === 0);
      for (const key of ['k0', 'k1', 'k2']) {
        const wanted = stuck.filter((one) => one.key === key).map(({ payload }) => payload);
        expect(publishers.published.filter((one) => one.key === key).map(({ value }) => value)).toEqual(wanted);
      }
      await until(() => relay.status().unavailableTopics.length === 0);
    },
  );

  it('writes nothing for a leader that is away for a moment', async () => {
    await stage.f.add(message({ topic: 'stuck', payload: 'x' }));
    const publishers = new ScriptedPublishers();
    let tries = 0;
    publishers.answer = (records) =>
      records.map(() => (++tries > 2 ? acknowledged : { status: 'unknown', failure: { code: 'LEADER_NOT_AVAILABLE', message: 'not now' } }));
    const { relay } = stage.relays.start({ concurrency: 1 }, publishers);
    const held: unknown[] = [];
    relay.on('held', (event) => held.push(event));
    await until(() => publishers.values.includes('x'));
    expect(held).toEqual([]);
  });
});
