import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Claim, ClaimSession, Settlement } from '../../libs/outbox/src/store/claim';
import type { Connection } from '../../libs/outbox/src/store/connection';
import { TransactionalClaimSession } from '../../libs/outbox/src/store/transactional-claim-session';
import { SERVERS } from '../setup/databases';
import { fillHeld, fillPending, fillSent, MANY, refreshStatistics } from './bulk';
import { NOTHING, StoreFixture } from './fixture';
import { openConnection } from './sessions';

const LANES = 64;
const BATCH = 1000;
const LIMITS = { lanes: 16, rows: BATCH, bytes: 100_000_000 };
const BOUND = 2 * BATCH + 2 * LANES;

/** Counts what the statements of a connection read, and keeps them to be explained. */
class CountingConnection implements Connection {
  readonly statements: { sql: string; parameters: unknown[] | undefined }[] = [];

  constructor(
    private readonly inner: Connection,
    private readonly isPostgres: boolean,
  ) {}

  query(sql: string, parameters?: unknown[]): Promise<unknown> {
    this.statements.push({ sql, parameters });
    return this.inner.query(sql, parameters);
  }
  change(sql: string, parameters?: unknown[]): Promise<number> {
    this.statements.push({ sql, parameters });
    return this.inner.change(sql, parameters);
  }
  begin(): Promise<void> {
    return this.inner.begin();
  }
  commit(): Promise<void> {
    return this.inner.commit();
  }
  rollback(): Promise<void> {
    return this.inner.rollback();
  }
  onSignal(): void {
    // Not of interest here.
  }
  onLost(): void {
    // Nor this.
  }
  close(): Promise<void> {
    return this.inner.close();
  }

  /** Rows and index entries read so far, in this session (MySQL, MariaDB) or in its open transaction (PostgreSQL). */
  async reads(): Promise<number> {
    if (this.isPostgres) {
      const rows = (await this.inner.query(
        `SELECT COALESCE(SUM(seq_tup_read + idx_tup_fetch), 0) AS n FROM pg_stat_xact_user_tables`,
      )) as { n: string }[];
      return Number(rows[0]?.n);
    }
    const rows = (await this.inner.query(`SHOW SESSION STATUS LIKE 'Handler_read%'`)) as { Value: string }[];
    return rows.reduce((sum, { Value }) => sum + Number(Value), 0);
  }

  /** What the counting itself reads. */
  async overhead(): Promise<number> {
    if (this.isPostgres) {
      // What earlier transactions have read must not be counted with the next.
      await this.inner.query('SELECT pg_stat_force_next_flush()');
      return 0;
    }
    const before = await this.reads();
    return (await this.reads()) - before;
  }

  async explain(sql: string, parameters: unknown[] | undefined): Promise<string> {
    const explain = this.isPostgres ? 'EXPLAIN' : 'EXPLAIN FORMAT=TRADITIONAL';
    const rows = (await this.inner.query(`${explain} ${sql}`, parameters)) as Record<string, unknown>[];
    return rows.map((row) => Object.entries(row).map(([name, value]) => `${name}=${String(value)}`).join(' ')).join('\n');
  }
}

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
