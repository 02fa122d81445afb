import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { OutboxMessage } from '../../../libs/outbox/src/event/message';
import type { ClaimSession } from '../../../libs/outbox/src/store/claim';
import { OutboxStore } from '../../../libs/outbox/src/store/outbox-store';
import type { DatabaseName } from '../../setup/databases';
import { ids, keyOfLane as keyInLane, message, NOTHING, StoreFixture, type FixtureOptions } from '../fixture';

const LANES = 8;
const LIMITS = { lanes: LANES, rows: 1000, bytes: 1_000_000 };
const keyOfLane = (lane: number): string => keyInLane(lane, LANES);

/** How claims of several relays stand beside one another, where there can be several. */
export function describeClaims(database: DatabaseName, options: FixtureOptions = {}): void {
  let f: StoreFixture;
  let one: ClaimSession;
  let two: ClaimSession;
  const add = (...messages: OutboxMessage[]): Promise<void> => f.add(...messages);

  beforeAll(async () => {
    f = await StoreFixture.open(database, LANES, options);
  });
  beforeEach(async () => {
    await f.clear();
    [one, two] = [await f.session(), await f.session()];
  });
  afterAll(() => f.close());

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
    const late = f.dataSource.createQueryRunner();
    await late.startTransaction();
    const unordered = new OutboxStore(f.store.dialect, LANES, 'none');
    const [first, second] = [message(), message()] as const;
    await unordered.add(late, [first]);
    await f.transaction((queryRunner) => unordered.add(queryRunner, [second]));
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
    expect((await f.store.backlog(f.dataSource)).pending).toBe(3);
  });
}
