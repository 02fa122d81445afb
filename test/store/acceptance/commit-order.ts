import { expect, it } from 'vitest';
import { OutboxStore } from '../../../libs/outbox/src/store/outbox-store';
import type { DatabaseName } from '../../setup/databases';
import { message, StoreFixture, type FixtureOptions } from '../fixture';

const LANES = 8;

/** The order of messages of transactions that overlap. */
export function describeCommitOrder(database: DatabaseName, options: FixtureOptions = {}): void {
  const open = (poolSize: number): Promise<StoreFixture> => StoreFixture.open(database, LANES, { ...options, extra: { poolSize } as object });
  const WRITERS = 8;
  const TRANSACTIONS = 40;

  /** Writers on one key; says how many messages stand in the log before one that committed earlier. */
  async function swaps(order: 'commit' | 'none'): Promise<number> {
    const f = await open(WRITERS + 1);
    try {
      const store = new OutboxStore(f.store.dialect, LANES, order);
      let clock = 0;
      const commits = new Map<string, { begun: number; ended: number }>();
      await Promise.all(
        Array.from({ length: WRITERS }, async () => {
          for (let i = 0; i < TRANSACTIONS; i++) {
            const one = message();
            // Several messages are written in another way than one.
            const others = Array.from({ length: i % 3 }, (_, n) => message({ key: `other-${n}` }));
            await f.transaction(async (queryRunner) => {
              await store.add(queryRunner, [...others, one]);
              // Some take longer to get from their insert to their commit.
              if (Math.random() < 0.3) await new Promise((resolve) => setTimeout(resolve, 2));
              commits.set(one.messageId, { begun: ++clock, ended: 0 });
            });
            const times = commits.get(one.messageId);
            if (times) times.ended = ++clock;
          }
        }),
      );
      const rows = await f.query<{ message_id: string }>(`SELECT message_id FROM ${f.tables.message} WHERE message_key = 'k' ORDER BY id`);
      const times = rows.map((row) => commits.get(row.message_id) ?? { begun: 0, ended: 0 });
      // A later id is out of order for certain when its commit was over before that of an earlier id began.
      return times.filter((time, i) => times.slice(i + 1).some((other) => other.ended < time.begun)).length;
    } finally {
      await f.close();
    }
  }

  it('is the order of ids for one key', async () => {
    expect(await swaps('commit')).toBe(0);
  });

  it('is not, when it is turned off', async () => {
    expect(await swaps('none')).toBeGreaterThan(0);
  });

  // P6
  it.each([1, 2])('has a writer of %i messages wait for another of their key, and nobody wait for the writer', async (count) => {
    const f = await open(4);
    try {
      let end!: () => void;
      let added!: () => void;
      const ended = new Promise<void>((resolve) => (end = resolve));
      const isAdded = new Promise<void>((resolve) => (added = resolve));
      const first = f.transaction(async (queryRunner) => {
        await f.store.add(queryRunner, [message()]);
        added();
        await ended;
      });
      await isAdded;
      let waits = true;
      const second = f.add(...Array.from({ length: count }, () => message())).finally(() => (waits = false));
      for (let n = 0; n < 20; n++) await f.add(message({ key: `other-${n}` }), message({ key: `another-${n}` }));
      for (let n = 0; n < 20; n++) await f.add(message({ key: `other-${n}` }));
      expect(waits).toBe(true);
      end();
      await Promise.all([first, second]);
      expect(await f.count('message')).toBe(61 + count);
    } finally {
      await f.close();
    }
  });
}
