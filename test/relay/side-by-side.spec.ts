import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SERVERS } from '../setup/databases';
import { ids, keyOfLane, message, StoreFixture } from '../store/fixture';
import { Relays, until } from './fixture';
import { acknowledged, ScriptedPublishers } from './scripted-publisher';

describe.each(SERVERS)('relays side by side on %s', (database) => {
  let f: StoreFixture;
  let relays: Relays;
  beforeAll(async () => {
    f = await StoreFixture.open(database, 64);
    relays = new Relays(f);
  });
  afterEach(async () => {
    await relays.stopAll();
    await f.clear();
  });
  afterAll(() => f.close());

  // B2
  it('share a saturated backlog within 30/70, and send each message once', async () => {
    for (let i = 0; i < 4; i++) {
      await f.add(...Array.from({ length: 500 }, (_, n) => message({ key: `k${n}`, payload: `${i}` })));
    }
    const publishers = [new ScriptedPublishers(), new ScriptedPublishers()] as const;
    for (const one of publishers) {
      // Both begin together, and each batch takes as long as that of the other.
      one.answer = async (records) => {
        await until(() => publishers.every(({ tried }) => tried.length > 0));
        await new Promise((resolve) => setTimeout(resolve, 20));
        return records.map(() => acknowledged);
      };
      relays.start({ batchSize: 20, publishTimeout: 5000, sessionTimeout: 10_000 }, one);
    }
    await until(async () => (await f.count('pending')) === 0);
    await until(() => publishers[0].published.length + publishers[1].published.length === 2000);
    const share = publishers[0].published.length / 2000;
    expect(share).toBeGreaterThan(0.3);
    expect(share).toBeLessThan(0.7);
    expect(new Set(publishers.flatMap(({ published }) => ids(published))).size).toBe(2000);
  });

  // E7
  it('go on when one of them hangs', async () => {
    await f.add(message({ key: keyOfLane(5, 64), payload: 'hung' }));
    const hung = new ScriptedPublishers();
    const { reached, letGo } = hung.hang();
    relays.start({ concurrency: 1, publishTimeout: 50_000, sessionTimeout: 60_000 }, hung);
    await reached;
    await f.add(message({ key: keyOfLane(6, 64), payload: 'other' }), message({ key: keyOfLane(5, 64), payload: 'behind' }));
    const { publishers } = relays.start();
    await until(() => publishers.values.length === 1);
    expect(publishers.values).toEqual(['other']);
    letGo();
    await until(async () => (await f.count('pending')) === 0);
    await until(() => hung.values.length + publishers.values.length === 3);
    expect([...hung.values, ...publishers.values].filter((value) => value !== 'other')).toEqual(['hung', 'behind']);
  });

  it('serve every lane with 100 claims of 16 of 64 saturated lanes', async () => {
    await f.add(...Array.from({ length: 64 }, (_, lane) => Array.from({ length: 30 }, () => message({ key: keyOfLane(lane, 64) }))).flat());
    const sessions = [await f.session(), await f.session()];
    const served = new Map<number, number>();
    for (let i = 0; i < 100; i++) {
      const session = sessions[i % 2];
      const claim = await session?.claim({ lanes: 16, rows: 16, bytes: 1e6 });
      for (const lane of claim?.lanes ?? []) served.set(lane, (served.get(lane) ?? 0) + 1);
      await session?.settle({ sent: claim?.messages ?? [], retried: [], parked: [], waiting: [] });
    }
    expect(served.size).toBe(64);
    expect(Math.max(...served.values()) - Math.min(...served.values())).toBeLessThanOrEqual(10);
  });
});
