import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Claim, ClaimSession, Settlement } from '../../libs/outbox/src/store/claim';
import { TransactionalClaimSession } from '../../libs/outbox/src/store/transactional-claim-session';
import { SERVERS } from '../setup/databases';
import { fillHeld, fillPending, fillSent, MANY, refreshStatistics } from './bulk';
import { CountingConnection } from './counting-connection';
import { NOTHING, StoreFixture } from './fixture';
import { openConnection } from './sessions';

const LANES = 64;
const BATCH = 1000;
const LIMITS = { lanes: 16, rows: BATCH, bytes: 100_000_000 };
const BOUND = 2 * BATCH + 2 * LANES;

describe.each(SERVERS)(`what a claim reads on %s, with ${MANY} sent rows beside`, (database) => {
  let f: StoreFixture;
  let connection: CountingConnection;
  let session: ClaimSession;

  beforeAll(async () => {
    f = await StoreFixture.open(database, LANES);
    await fillSent(f, 1, MANY);
  });
  beforeEach(async () => {
    connection = new CountingConnection(await openConnection(f.store, f.dataSource, 60_000), database === 'postgres');
    session = new TransactionalClaimSession(f.store, connection);
  });
  afterAll(() => f.close());

  async function claim(): Promise<{ claim: Claim | undefined; reads: number }> {
    const overhead = await connection.overhead();
    // PostgreSQL counts by transaction, and a claim that finds nothing has ended its own.
    const before = database === 'postgres' ? 0 : await connection.reads();
    connection.statements.length = 0;
    const taken = await session.claim(LIMITS);
    return { claim: taken, reads: (await connection.reads()) - before - overhead };
  }
  const settle = (settlement: Partial<Settlement>): Promise<void> => session.settle({ ...NOTHING, ...settlement });
  const done = async (): Promise<void> => {
    await session.close();
  };

  it('is next to nothing when nothing is pending', async () => {
    const { claim: taken, reads } = await claim();
    expect(taken).toBeUndefined();
    expect(reads).toBeLessThanOrEqual(4 * LANES);
    await done();
  });

  it(`is in bounds with ${MANY} messages pending, before and after statistics, and so are its plans`, async () => {
    await fillPending(f, MANY + 1, MANY);
    for (const fresh of [false, true]) {
      if (fresh) await refreshStatistics(f);
      const { claim: taken, reads } = await claim();
      expect(taken?.messages.length).toBeGreaterThan(BATCH * 0.9);
      expect(reads, `statistics ${fresh ? 'fresh' : 'stale'}`).toBeLessThanOrEqual(BOUND);
      const beforeSettle = await connection.reads();
      await settle({ sent: taken?.messages ?? [] });
      // The list of keys counts as rows too. PostgreSQL has forgotten what an ended transaction read: there the plan must do.
      if (database !== 'postgres') expect((await connection.reads()) - beforeSettle - (await connection.overhead())).toBeLessThanOrEqual(2 * BOUND);
      for (const { sql, parameters } of connection.statements) {
        const plan = await connection.explain(sql, parameters);
        expect(plan).not.toMatch(/Seq Scan on (outbox_pending|outbox_message|outbox_held)|Sort|filesort/);
        expect(plan).not.toMatch(/table=[pmht]\b.*type=(ALL|index)\b/);
      }
    }
    await done();
  });

  it(`is in bounds with one key held and ${MANY} messages behind it, before and after the key is due`, async () => {
    await fillHeld(f, { first: 2 * MANY + 1, count: MANY, lane: 0, dueInMs: 3_600_000 });
    await refreshStatistics(f);
    for (let round = 0; round < 5; round++) {
      const { claim: taken, reads } = await claim();
      expect(taken?.messages.every(({ key }) => key !== 'held')).toBe(true);
      expect(taken?.messages.length).toBeGreaterThan(BATCH * 0.9);
      expect(reads, `round ${round}`).toBeLessThanOrEqual(BOUND);
      await settle({ sent: taken?.messages ?? [] });
    }
    await f.makeDue();
    let held = 0;
    for (let round = 0; round < 5; round++) {
      const { claim: taken, reads } = await claim();
      held += taken?.messages.filter(({ key }) => key === 'held').length ?? 0;
      expect(reads, `round ${round}`).toBeLessThanOrEqual(BOUND);
      await settle({ sent: taken?.messages ?? [] });
    }
    expect(held).toBeGreaterThan(0);
    await done();
  });
});
