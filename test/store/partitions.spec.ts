import { describe, expect, it } from 'vitest';
import { IDS_PER_DAY } from '../../libs/outbox/src/store/partitions';
import { sweep } from '../../libs/outbox/src/store/sweep';
import { TransactionalClaimSession } from '../../libs/outbox/src/store/transactional-claim-session';
import { SERVERS } from '../setup/databases';
import { describeClaims } from './acceptance/claims';
import { describeCommitOrder } from './acceptance/commit-order';
import { describeRefusals } from './acceptance/refusals';
import { describeStore } from './acceptance/store';
import { fillPending, fillSent, refreshStatistics } from './bulk';
import { CountingConnection } from './counting-connection';
import { NOTHING, StoreFixture } from './fixture';
import { openConnection } from './sessions';

describe.each(SERVERS)('with a partitioned log on %s', (database) => {
  describe('store', () => {
    describeStore(database, { partitioned: true });
  });
  describe('a refused message', () => {
    describeRefusals(database, { partitioned: true });
  });
  describe('claims side by side', () => {
    describeClaims(database, { partitioned: true });
  });
  describe('commit order', () => {
    describeCommitOrder(database, { partitioned: true });
  });
});

const LANES = 64;
const BATCH = 1000;
const LIMITS = { lanes: 16, rows: BATCH, bytes: 100_000_000 };
/** As for a log that is one table. */
const BOUND = 2 * BATCH + 2 * LANES;
/** Of each of two days. With few rows MariaDB prefers to read a whole partition. */
const SENT = 8000;
const PENDING = 800;

describe.each(SERVERS)('what a claim reads in a partitioned log on %s', (database) => {
  it('is what it reads in one table, across two days, and so is what follows it', async () => {
    const f = await StoreFixture.open(database, LANES, { partitioned: true });
    const today = Math.floor(Date.now() / 86_400_000);
    for (const day of [today + 1, today + 2]) {
      const first = Number(IDS_PER_DAY) * day + 1;
      await fillSent(f, first, SENT);
      await fillPending(f, first + SENT, PENDING);
    }
    await refreshStatistics(f);
    const connection = new CountingConnection(await openConnection(f.store, f.dataSource, 60_000), database === 'postgres');
    const session = new TransactionalClaimSession(f.store, connection);
    const overhead = await connection.overhead();
    const before = database === 'postgres' ? 0 : await connection.reads();
    const claim = await session.claim(LIMITS);
    expect((await connection.reads()) - before - overhead).toBeLessThanOrEqual(BOUND);
    const days = new Set(claim?.messages.map(({ id }) => BigInt(id) / IDS_PER_DAY));
    expect(days.size).toBe(2);
    await session.settle({ ...NOTHING, sent: claim?.messages ?? [] });
    await connection.begin();
    expect((await sweep(connection, f.store.dialect, 'mark')).messages).toBe(claim?.messages.length);
    await connection.rollback();
    const statements = connection.statements.filter(({ sql }) => sql.includes('outbox_message'));
    expect(statements.length).toBeGreaterThanOrEqual(2);
    for (const { sql, parameters } of statements) {
      const plan = await connection.explain(sql, parameters);
      expect(plan).not.toMatch(/Seq Scan|Sort|filesort|type=(ALL|index)\b/);
      // Neither the partitions before nor those behind are looked into. MariaDB does not tell.
      expect(plan).not.toMatch(/outbox_message_(first|rest)|p_first|p_rest/);
    }
    await session.close();
    await f.close();
  });
});
