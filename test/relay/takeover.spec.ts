import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ClaimSession } from '../../libs/outbox/src/store/claim';
import { SERVERS } from '../setup/databases';
import { ids, message, StoreFixture } from '../store/fixture';
import { buildChild, RelayChild } from './child';
import { Relays, until } from './fixture';
import { acknowledged, ScriptedPublishers } from './scripted-publisher';

const LANES = 8;
const TIMEOUTS = { publishTimeout: 500, sessionTimeout: 2500 };

let built: Awaited<ReturnType<typeof buildChild>>;
beforeAll(async () => {
  built = await buildChild();
});
afterAll(() => built.remove());

/** Ends every session on the database but the one that says so. */
async function killOthers(f: StoreFixture): Promise<void> {
  if (f.store.dialect.name === 'postgres') {
    await f.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`);
    return;
  }
  const rows = await f.query<{ id: number }>(`SELECT id AS id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()`);
  for (const { id } of rows) await f.query(`KILL ${id}`).catch(() => undefined);
}

describe.each(SERVERS)('the lanes of a relay on %s', (database) => {
  let f: StoreFixture;
  let relays: Relays;
  const children: RelayChild[] = [];
  beforeAll(async () => {
    f = await StoreFixture.open(database, LANES);
    relays = new Relays(f);
  });
  beforeEach(() => {
    vi.spyOn(Logger.prototype, 'error').mockReturnValue();
    vi.spyOn(Logger.prototype, 'log').mockReturnValue();
  });
  afterEach(async () => {
    look = undefined;
    for (const child of children.splice(0)) await child.end();
    await relays.stopAll();
    await f.clear();
    vi.restoreAllMocks();
  });
  afterAll(() => f.close());

  function child(publishMs: number, relay: object = {}): RelayChild {
    const started = new RelayChild(built.file, {
      dataSource: f.dataSource.options,
      lanes: LANES,
      relay: { concurrency: 1, ...TIMEOUTS, retryDelay: 20, ...relay },
      publishMs,
    });
    children.push(started);
    return started;
  }
  let look: ClaimSession | undefined;
  const free = async (): Promise<number> => {
    const session = (look ??= await f.session());
    const claim = await session.claim({ lanes: LANES, rows: 1000, bytes: 1e9 });
    await session.release();
    return claim?.lanes.length ?? 0;
  };
  const waitingForLocks = async (): Promise<number> => {
    // InnoDB shows what it showed before to who asks again within 100 ms.
    await new Promise((resolve) => setTimeout(resolve, 200));
    const [row] = await f.query<{ n: string | number }>(
      database === 'postgres'
        ? `SELECT COUNT(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
        : `SELECT COUNT(*) AS n FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()`,
    );
    return Number(row?.n);
  };
  const killConnections = (): Promise<void> => killOthers(f);

  // J2, I5
  it('are free as soon as it is killed, and its messages are sent by another', async () => {
    await f.add(...Array.from({ length: 20 }, (_, i) => message({ key: `k${i}` })));
    const killed = child(400);
    await killed.sees('publish ');
    expect(await free()).toBe(0);
    killed.signal('SIGKILL');
    const { publishers } = relays.start();
    await until(async () => (await f.count('pending')) === 0);
    expect(new Set(ids(publishers.published)).size).toBe(20);
  });

  // J1
  it('are free after the session timeout when it is frozen while it publishes, and it cannot settle when it wakes', async () => {
    await f.add(...Array.from({ length: 20 }, (_, i) => message({ key: `k${i}` })));
    const frozen = child(300);
    await frozen.sees('publish ');
    frozen.signal('SIGSTOP');
    await until(async () => (await free()) > 0);
    const { publishers } = relays.start({ concurrency: 1 });
    await until(() => publishers.published.length === 20);
    await until(async () => (await f.count('pending')) === 0);
    const settledBefore = await f.count('settled');
    frozen.signal('SIGCONT');
    await frozen.sees('lost 20');
    expect(frozen.saw('settled ')).toBe(false);
    expect(await f.count('settled')).toBeLessThanOrEqual(settledBefore);
    // And it works on.
    await relays.stopAll();
    await f.add(message());
    await frozen.sees('settled 1');
  });

  it('are free after the session timeout when it is frozen while it reads tens of megabytes', async () => {
    const payload = 'x'.repeat(900_000);
    for (let i = 0; i < 4; i++) await f.add(...Array.from({ length: 10 }, (_, n) => message({ key: `k${n}`, payload })));
    const frozen = child(300, { batchBytes: 100_000_000 });
    await frozen.sees('ready');
    // The first lanes that are taken are being read: that takes longer than we do to freeze it.
    await until(async () => (await free()) < LANES);
    frozen.signal('SIGSTOP');
    await until(async () => (await free()) > 0);
    const { publishers } = relays.start({ publishTimeout: 20_000, sessionTimeout: 30_000 });
    await until(() => new Set(ids(publishers.published)).size === 40);
    frozen.signal('SIGCONT');
    await until(async () => (await f.count('pending')) === 0);
  });

  it('are free after the session timeout when it is frozen while it settles, and nothing of that stays', async () => {
    await f.add(...Array.from({ length: 20 }, (_, i) => message({ key: `k${i}` })));
    const frozen = child(300);
    await frozen.sees('publish ');
    // Its settlement will wait for this row: so it can be frozen in the middle of it.
    const blocker = f.dataSource.createQueryRunner();
    await blocker.startTransaction();
    await blocker.query(`SELECT id FROM ${f.tables.pending} FOR UPDATE`);
    await until(async () => (await waitingForLocks()) > 0);
    frozen.signal('SIGSTOP');
    await blocker.rollbackTransaction();
    await blocker.release();
    await until(async () => (await free()) > 0);
    const { publishers } = relays.start({ concurrency: 1 });
    await until(async () => (await f.count('pending')) === 0);
    expect(publishers.published).toHaveLength(20);
    frozen.signal('SIGCONT');
    await frozen.sees('lost 20');
    expect(frozen.saw('settled ')).toBe(false);
    await until(async () => (await f.count('message', 'status = 1')) === 20);
  });

  // B6
  it('are taken again after its connections are killed while it publishes, and the publish is stopped at once', async () => {
    await f.add(...Array.from({ length: 5 }, (_, i) => message({ key: `k${i}` })));
    const publishers = new ScriptedPublishers();
    const { reached, letGo } = publishers.hang();
    let closing = false;
    const closed = new Promise<void>((resolve) => {
      publishers.onClose = async () => {
        closing = true;
        resolve();
        await new Promise((ready) => setTimeout(ready, 300));
        closing = false;
      };
    });
    const { relay } = relays.start({ concurrency: 1, publishTimeout: 20_000, sessionTimeout: 30_000 }, publishers);
    const lost: number[] = [];
    relay.on('laneLost', (event) => lost.push(event.messages));
    await reached;
    await killConnections();
    await closed;
    expect(publishers.acts).toEqual(['create', 'publish', 'close']);
    const { answer } = publishers;
    const sentWhileClosing: boolean[] = [];
    publishers.answer = (records) => {
      sentWhileClosing.push(closing);
      return answer(records);
    };
    letGo(answer);
    await until(async () => (await f.count('pending')) === 0);
    expect(sentWhileClosing).toEqual([false]);
    expect(lost).toEqual([5]);
    await until(() => relay.status().trouble === null);
  });

  it('are taken again after its idle connections are killed', async () => {
    const { relay, publishers } = relays.start();
    const troubles: unknown[] = [];
    relay.on('failed', ({ error }) => troubles.push(error));
    for (let i = 0; i < 3; i++) {
      const before = relay.status().lastSuccessAt;
      await until(() => relay.status().lastSuccessAt !== before);
      await killConnections();
      await f.add(message({ payload: `${i}` }));
      await until(async () => (await f.count('pending')) === 0);
    }
    expect([...new Set(publishers.values)]).toEqual(['0', '1', '2']);
    // A connection that was looking at that moment may say so; one that was idle does not.
    expect(troubles.length).toBeLessThanOrEqual(6);
  });

  it('are taken again after tables were missing for a while, and that is logged once', async () => {
    const { relay, publishers } = relays.start();
    await until(() => relay.status().lastSuccessAt !== null);
    const name = f.store.dialect.name === 'postgres' ? '"away"' : '`away`';
    await f.query(`ALTER TABLE ${f.tables.pending} RENAME TO ${name}`);
    let failures = 0;
    relay.on('failed', () => failures++);
    await until(() => failures >= 6);
    expect(relay.status().trouble?.stage).toBe('database');
    await f.query(`ALTER TABLE ${name} RENAME TO ${f.tables.pending}`);
    await f.add(message());
    await until(() => publishers.published.length === 1 && relay.status().trouble === null);
    expect(vi.mocked(Logger.prototype.error).mock.calls.length).toBeLessThanOrEqual(2);
  });
});

describe.each(SERVERS)('the connections of a relay on %s', (database) => {
  // B6, J12
  it.each(['claimed', 'published', 'settled'] as const)('may be killed as soon as a batch is %s, again and again', async (step) => {
    vi.spyOn(Logger.prototype, 'error').mockReturnValue();
    vi.spyOn(Logger.prototype, 'log').mockReturnValue();
    // One connection of our own: all others are the relay's.
    const f = await StoreFixture.open(database, LANES, { extra: { poolSize: 1 } as object });
    const relays = new Relays(f);
    try {
      const payloads = Array.from({ length: 30 }, (_, i) => `${i}`);
      await f.add(...payloads.map((payload) => message({ key: 'k', payload })));
      const publishers = new ScriptedPublishers();
      publishers.answer = async (records) => {
        await new Promise((resolve) => setTimeout(resolve, 30));
        return records.map(() => acknowledged);
      };
      const { relay } = relays.start({ batchSize: 5, publishTimeout: 20_000, sessionTimeout: 30_000 }, publishers);
      let kills = 0;
      relay.on(step, () => {
        if (kills++ < 4) void killOthers(f).catch(() => undefined);
      });
      await until(async () => (await f.count('pending')) === 0);
      expect(kills).toBeGreaterThanOrEqual(4);
      // First appearances are in order, however often some came again.
      expect([...new Set(publishers.values)]).toEqual(payloads);
      await until(() => relay.status().trouble === null);
    } finally {
      await relays.stopAll();
      await f.close();
      vi.restoreAllMocks();
    }
  });
});

describe.each(SERVERS)('the settings of a relay on %s', (database) => {
  it('are not seen on the connections of the app', async () => {
    const f = await StoreFixture.open(database, LANES);
    const relays = new Relays(f);
    const settings = (): Promise<unknown> =>
      f.query(
        database === 'postgres'
          ? `SELECT name, setting FROM pg_settings WHERE name IN ('idle_in_transaction_session_timeout', 'tcp_user_timeout', 'lock_timeout', 'statement_timeout', 'enable_seqscan', 'default_transaction_isolation') ORDER BY name`
          : `SHOW SESSION VARIABLES WHERE Variable_name IN ('wait_timeout', 'net_write_timeout', 'net_read_timeout', 'lock_wait_timeout', 'innodb_lock_wait_timeout', 'transaction_isolation', 'tx_isolation')`,
      );
    try {
      const before = await settings();
      const { relay } = relays.start();
      await until(() => relay.status().lastSuccessAt !== null);
      for (let i = 0; i < 20; i++) expect(await settings()).toEqual(before);
      await relays.stopAll();
      expect(await settings()).toEqual(before);
    } finally {
      await relays.stopAll();
      await f.close();
    }
  });
});
