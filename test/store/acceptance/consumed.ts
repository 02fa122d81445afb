import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { DatabaseName } from '../../setup/databases';
import { purgeByTime } from '../../../libs/outbox/src/store/purge';
import { StoreFixture, type FixtureOptions } from '../fixture';
import { openConnection } from '../sessions';

const LANES = 8;

/** How consumed messages are told. */
export function describeConsumed(database: DatabaseName, options: FixtureOptions = {}): void {
  let f: StoreFixture;
  beforeAll(async () => {
    f = await StoreFixture.open(database, LANES, options);
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

  it('are recognised in batches, byte for byte', async () => {
    await consume('a', 'id');
    const batch = ['id', 'id ', 'ID', 'other'];
    const fresh = () => f.transaction((queryRunner) => f.store.consumeBatch(queryRunner, 'a', batch, 'wait'));
    expect(await fresh()).toEqual(new Set(batch.slice(1)));
    expect(await fresh()).toEqual(new Set());
  });

  it('are forgotten when they are old', async () => {
    await consume('a', 'id');
    await consume('a', 'id ');
    const connection = await openConnection(f.store, f.dataSource);
    try {
      const purge = (age: number) => purgeByTime(connection, f.store.dialect, 'consumed', '0', { age, rows: 10 });
      expect((await purge(3_600_000)).purged).toBe(0);
      expect((await purge(-3_600_000)).purged).toBe(2);
      expect(await f.count('consumed')).toBe(0);
    } finally {
      await connection.close();
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
