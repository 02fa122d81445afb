import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { DatabaseName } from '../../setup/databases';
import { StoreFixture } from '../fixture';

const LANES = 8;

/** How consumed messages are told. */
export function describeConsumed(database: DatabaseName): void {
  let f: StoreFixture;
  beforeAll(async () => {
    f = await StoreFixture.open(database, LANES);
  });
  beforeEach(() => f.clear());
  afterAll(() => f.close());

  const consume = (consumer: string, id: string): Promise<boolean> =>
    f.transaction((queryRunner) => f.store.consume(queryRunner, consumer, id));

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
    await f.transaction(async (queryRunner) => {
      expect(await f.store.consume(queryRunner, 'a', 'id')).toBe(false);
      expect(await f.store.consume(queryRunner, 'a', 'other')).toBe(true);
    });
    expect(await consume('a', 'other')).toBe(false);
  });
}
