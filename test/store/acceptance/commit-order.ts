import { expect, it } from 'vitest';
import { OutboxStore } from '../../../libs/outbox/src/store/outbox-store';
import type { DatabaseName } from '../../setup/databases';
import { message, StoreFixture } from '../fixture';

const LANES = 8;

/** The order of messages of transactions that overlap. */
export function describeCommitOrder(database: DatabaseName): void {
  const WRITERS = 8;
  const TRANSACTIONS = 40;

  /** Writers on one key; says how many messages stand in the log before one that committed earlier. */
  async function swaps(order: 'commit' | 'none'): Promise<number> {
    const f = await StoreFixture.open(database, LANES, { extra: { poolSize: WRITERS + 1 } as object });
    try {
      const store = new OutboxStore(f.store.dialect, LANES, order);
      let clock = 0;
      const commits = new Map<string, { begun: number; ended: number }>();
      await Promise.all(
        Array.from({ length: WRITERS }, async () => {
          for (let i = 0; i < TRANSACTIONS; i++) {
            const one = message();
            await f.transaction(async (queryRunner) => {
              await store.add(queryRunner, [one]);
              // Some take longer to get from their insert to their commit.
              if (Math.random() < 0.3) await new Promise((resolve) => setTimeout(resolve, 2));
              commits.set(one.messageId, { begun: ++clock, ended: 0 });
            });
            const times = commits.get(one.messageId);
            if (times) times.ended = ++clock;
          }
        }),
      );
      const rows = await f.query<{ message_id: string }>(`SELECT message_id FROM ${f.tables.message} ORDER BY id`);
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
}
