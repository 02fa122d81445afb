import { Logger } from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import { TransactionalClaimSession } from '../../libs/outbox/src/store/transactional-claim-session';
import { Relays, until } from '../relay/fixture';
import { SERVERS } from '../setup/databases';
import { CountingConnection } from './counting-connection';
import { message, StoreFixture } from './fixture';
import { openConnection } from './sessions';

const LANES = 64;
/** Messages that flow beside the open transaction; 120,000 are a minute of 2,000 a second. */
const FLOW = Number(process.env.OUTBOX_TEST_FLOW ?? 8000);
const BATCH = 500;

describe.each(SERVERS)(`a transaction that stays open on %s while ${FLOW} messages flow`, (database) => {
  it('does not make claims read more, and the backlog returns to nothing', async () => {
    vi.spyOn(Logger.prototype, 'error').mockReturnValue();
    const f = await StoreFixture.open(database, LANES, { extra: { poolSize: 8 } as object });
    const relays = new Relays(f);
    const other = f.dataSource.createQueryRunner();
    const connection = new CountingConnection(await openConnection(f.store, f.dataSource, 60_000), database === 'postgres');
    const session = new TransactionalClaimSession(f.store, connection);

    /** What a claim costs that finds nothing, or next to nothing. */
    const cost = async (): Promise<{ reads: number; ms: number }> => {
      const overhead = await connection.overhead();
      const before = database === 'postgres' ? 0 : await connection.reads();
      const begun = performance.now();
      const claim = await session.claim({ lanes: 16, rows: 1000, bytes: 1e9 });
      const ms = performance.now() - begun;
      const reads = (await connection.reads()) - before - overhead;
      if (claim) await session.release();
      return { reads, ms };
    };
    try {
      await cost();
      const idle = await cost();
      // It sees the tables as they are now, for as long as it likes: nothing that is deleted from now on can go.
      await other.startTransaction('REPEATABLE READ');
      await other.query(`SELECT COUNT(*) FROM ${f.tables.pending}`);
      const { publishers } = relays.start({ publishTimeout: 20_000, sessionTimeout: 30_000 });
      for (let sent = 0; sent < FLOW; sent += BATCH) {
        await f.add(...Array.from({ length: BATCH }, (_, i) => message({ key: `k${i}` })));
        await until(() => publishers.published.length >= sent - 4 * BATCH);
      }
      await until(async () => (await f.count('pending')) === 0);
      expect(publishers.published).toHaveLength(FLOW);
      await relays.stopAll();
      const beside = await cost();
      expect(beside.reads).toBeLessThanOrEqual(10 * Math.max(idle.reads, LANES));
      if (process.env.OUTBOX_TEST_FLOW) {
        console.log(`${database}: an idle claim read ${idle.reads} rows in ${idle.ms.toFixed(1)} ms, beside the open transaction ${beside.reads} in ${beside.ms.toFixed(1)} ms`);
      }
      await other.rollbackTransaction();
    } finally {
      await relays.stopAll();
      await session.close();
      await other.release();
      await f.close();
      vi.restoreAllMocks();
    }
  });
});
