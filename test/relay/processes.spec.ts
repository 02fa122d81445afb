import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SERVERS } from '../setup/databases';
import { message, StoreFixture } from '../store/fixture';
import { buildChild, RelayChild } from './child';
import { until } from './fixture';

const LANES = 32;
const MESSAGES = 1000;
const MINUTES = 60_000;

let built: Awaited<ReturnType<typeof buildChild>>;
beforeAll(async () => {
  built = await buildChild();
});
afterAll(() => built.remove());

describe.each(SERVERS)('three relay processes on %s', (database) => {
  let f: StoreFixture;
  let children: RelayChild[] = [];
  beforeAll(async () => {
    f = await StoreFixture.open(database, LANES);
  });
  beforeEach(() => f.clear());
  afterEach(async () => {
    for (const child of children) await child.end();
  });
  afterAll(() => f.close());

  async function start(setups: readonly { clockOffBy?: number; refusesFirst?: boolean }[]): Promise<void> {
    children = setups.map(
      (setup) =>
        new RelayChild(built.file, {
          dataSource: f.dataSource.options,
          lanes: LANES,
          relay: { concurrency: 1, batchSize: 25, lanesPerClaim: 3, retryDelay: 20, maxRetryDelay: 200 },
          publishMs: 20,
          ...setup,
        }),
    );
    for (const child of children) await child.sees('ready');
  }
  const add = (count: number): Promise<void> => f.add(...Array.from({ length: count }, (_, i) => message({ key: `k${i}` })));
  const drained = () => until(async () => (await f.count('pending')) + (await f.count('held')) === 0);

  // B2
  it('send each message once, and all of them work', async () => {
    await start([{}, {}, {}]);
    await add(MESSAGES);
    await drained();
    await until(() => children.flatMap((child) => child.told('settled ')).reduce((sum, n) => sum + Number(n), 0) === MESSAGES);
    const sent = children.map((child) => child.told('sent '));
    expect(sent.flat()).toHaveLength(MESSAGES);
    expect(new Set(sent.flat()).size).toBe(MESSAGES);
    for (const one of sent) expect(one.length).toBeGreaterThan(0);
  });

  // J3: leases and retries go by the database's clock.
  it('take nothing from one another, and delay nothing, though their clocks are minutes apart', async () => {
    await start([{ refusesFirst: true }, { clockOffBy: 10 * MINUTES, refusesFirst: true }, { clockOffBy: -10 * MINUTES, refusesFirst: true }]);
    await add(200);
    await drained();
    await until(() => children.flatMap((child) => child.told('sent ')).length === 200);
    expect(new Set(children.flatMap((child) => child.told('sent '))).size).toBe(200);
    expect(children.some((child) => child.saw('lost '))).toBe(false);
    expect(await f.count('dead')).toBe(0);
  });
});
