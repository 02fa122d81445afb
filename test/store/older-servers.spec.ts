import { Logger } from '@nestjs/common';
import { diagnoseOutbox } from 'nestjs-transactional-outbox';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Relays, until } from '../relay/fixture';
import { ScriptedPublishers } from '../relay/scripted-publisher';
import { type OwnServer, startOwn } from '../services/index.mjs';
import { describeClaims } from './acceptance/claims';
import { describeCommitOrder } from './acceptance/commit-order';
import { describeConsumed } from './acceptance/consumed';
import { describeRefusals } from './acceptance/refusals';
import { describeStore } from './acceptance/store';
import { message, StoreFixture } from './fixture';

/** D11: the oldest servers there are, and what they lack. */
const SERVERS = [
  { release: 'mysql-5.7', database: 'mysql', laneLocks: 'named-locks' },
  { release: 'mysql-8.0', database: 'mysql', laneLocks: 'skip-locked' },
  { release: 'mariadb-10.2', database: 'mariadb', laneLocks: 'named-locks' },
] as const;

describe.each(SERVERS)('$release', ({ release, database, laneLocks }) => {
  const variable = `OUTBOX_${database.toUpperCase()}_URL`;
  const usual = process.env[variable];
  let server: OwnServer;
  beforeAll(async () => {
    server = await startOwn(release);
    process.env[variable] = server.info.url;
  });
  afterAll(async () => {
    process.env[variable] = usual;
    await server?.remove();
  });

  beforeEach(() => {
    vi.spyOn(Logger.prototype, 'error').mockReturnValue();
    vi.spyOn(Logger.prototype, 'log').mockReturnValue();
  });

  it('is what it says, and locks lanes as it can', async () => {
    const f = await StoreFixture.open(database);
    const [row] = await f.query<{ version: string }>('SELECT VERSION() AS version');
    expect(row?.version).toContain(release.split('-')[1]);
    expect(f.store.dialect.laneLocks).toBe(laneLocks);
    await f.close();
  });

  it('is found well by the doctor', async () => {
    const f = await StoreFixture.open(database);
    const { findings, healthy } = await diagnoseOutbox(f.dataSource);
    await f.close();
    expect(healthy).toBe(true);
    // By default MySQL 5.7 takes statements of 4 MiB.
    const wrong = findings.filter(({ verdict }) => verdict !== 'ok').map(({ check, verdict }) => [check, verdict]);
    expect(wrong).toEqual(release === 'mysql-5.7' ? [['server.packet', 'warning']] : []);
    expect(findings[0]?.seen).toContain(laneLocks === 'named-locks' ? 'it has no SKIP LOCKED' : 'with SKIP LOCKED');
  });

  // What has no SKIP LOCKED locks lanes by name; those of a relay whose connection dies must be free too.
  it('has relays that share the work, and take over what a killed connection leaves', async () => {
    const f = await StoreFixture.open(database);
    const relays = new Relays(f);
    const publishers = new ScriptedPublishers();
    const { reached, letGo } = publishers.hang();
    try {
      await f.add(...Array.from({ length: 100 }, (_, i) => message({ key: `k${i}` })));
      relays.start({ concurrency: 1, lanesPerClaim: 2, publishTimeout: 20_000, sessionTimeout: 30_000 }, publishers);
      const stuck = await reached;
      const { publishers: others } = relays.start({ batchSize: 20, lanesPerClaim: 2 });
      await until(async () => (await f.count('pending')) <= stuck.length);
      expect(others.published).toHaveLength(100 - stuck.length);
      for (const { id } of await f.query<{ id: number }>(
        'SELECT id AS id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()',
      )) {
        await f.query(`KILL ${id}`).catch(() => undefined);
      }
      await until(async () => (await f.count('pending')) === 0);
      letGo();
    } finally {
      await relays.stopAll();
      await f.close();
    }
  });

  describeStore(database);
  describe('a refused message', () => {
    describeRefusals(database);
  });
  describe('consumed messages', () => {
    describeConsumed(database);
  });
  describe('claims side by side', () => {
    describeClaims(database);
  });
  describe('commit order', () => {
    describeCommitOrder(database);
  });
});
