import { type CheckId, outboxMigrations, type Verdict } from 'nestjs-transactional-outbox';
import { afterEach, describe, expect, it } from 'vitest';
import { DATABASES, SERVERS } from '../../setup/databases';
import { message, refuse, StoreFixture } from '../../store/fixture';
import { examine } from './examine';

let f: StoreFixture | undefined;
afterEach(async () => {
  await f?.close();
  f = undefined;
});

interface Break {
  readonly mysql: readonly string[];
  readonly postgres: readonly string[];
  /** What must be found, and what must be said of it on each. */
  readonly found: Partial<Record<CheckId, Verdict>>;
  readonly said: Partial<Record<CheckId, { readonly mysql: readonly string[]; readonly postgres: readonly string[] }>>;
}

/** A set-up that is broken; the server is well. */
const BROKEN: Readonly<Record<string, Break>> = {
  'without some of the tables': {
    mysql: ['DROP TABLE outbox_dead', 'DROP TABLE consumed_sequence'],
    postgres: ['DROP TABLE outbox_dead', 'DROP TABLE consumed_sequence'],
    found: { 'tables.present': 'fault' },
    said: { 'tables.present': { mysql: ['outbox_dead, consumed_sequence'], postgres: ['outbox_dead, consumed_sequence'] } },
  },
  'with other columns': {
    mysql: [
      'ALTER TABLE outbox_message DROP COLUMN tenant_id',
      'ALTER TABLE outbox_message MODIFY payload TEXT NULL, MODIFY correlation_id VARCHAR(190) NOT NULL',
      'ALTER TABLE outbox_message MODIFY id BIGINT NOT NULL, ADD COLUMN cost_centre INT NOT NULL, ADD COLUMN note INT NULL',
      'ALTER TABLE outbox_message DROP COLUMN sent_at, ADD COLUMN sent_at DATETIME(6) NULL',
      'ALTER TABLE outbox_message MODIFY updated_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)',
      'ALTER TABLE consumed_message MODIFY consumed_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), MODIFY consumer VARCHAR(20) NOT NULL',
      // As wide and wider does no harm.
      'ALTER TABLE outbox_message MODIFY headers LONGTEXT NULL, MODIFY retry_count BIGINT NOT NULL DEFAULT 0, MODIFY event_type VARCHAR(300) NOT NULL',
    ],
    postgres: [
      'ALTER TABLE outbox_message DROP COLUMN tenant_id',
      'ALTER TABLE outbox_message ALTER COLUMN payload TYPE VARCHAR(100), ALTER COLUMN correlation_id SET NOT NULL',
      'ALTER TABLE outbox_message ALTER COLUMN id DROP IDENTITY, ADD COLUMN cost_centre INT NOT NULL, ADD COLUMN note INT NULL',
      'ALTER TABLE outbox_message ALTER COLUMN sent_at DROP EXPRESSION',
      'ALTER TABLE consumed_message ALTER COLUMN consumed_at TYPE TIMESTAMPTZ(6), ALTER COLUMN consumer TYPE VARCHAR(20) COLLATE "C"',
      'ALTER TABLE outbox_message ALTER COLUMN retry_count TYPE BIGINT, ALTER COLUMN event_type TYPE VARCHAR(300) COLLATE "C"',
    ],
    // What gives the ids of PostgreSQL went with the identity. A zone in the time is the zone of whoever reads.
    found: { 'tables.columns': 'fault', 'server.ids': 'warning' },
    said: {
      'tables.columns': {
        mysql: [
          'outbox_message.tenant_id is missing',
          'outbox_message.payload is text instead of mediumtext',
          'outbox_message.correlation_id must be able to be NULL',
          'outbox_message.id gets no value by itself',
          'outbox_message.sent_at gets no value by itself',
          "outbox_message.cost_centre is none of the outbox's",
          'outbox_message.updated_at changes with each update',
          'consumed_message.consumed_at is timestamp(6) instead of datetime(6)',
          'consumed_message.consumer is varchar(20) instead of varchar(100)',
        ],
        postgres: [
          'outbox_message.tenant_id is missing',
          'outbox_message.payload is varchar(100) instead of text',
          'outbox_message.correlation_id must be able to be NULL',
          'outbox_message.id gets no value by itself',
          'outbox_message.sent_at gets no value by itself',
          "outbox_message.cost_centre is none of the outbox's",
          'consumed_message.consumed_at is timestamp(6) with time zone instead of timestamp(6)',
          'consumed_message.consumer is varchar(20) instead of varchar(100)',
        ],
      },
    },
  },
  'with collations that blur': {
    mysql: [
      'ALTER TABLE consumed_message MODIFY message_id VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL',
      'ALTER TABLE outbox_hold MODIFY message_key VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL',
      'ALTER TABLE outbox_held MODIFY message_key VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL',
      'ALTER TABLE outbox_message MODIFY payload MEDIUMTEXT CHARACTER SET latin1 NULL',
      // Bytes are bytes.
      'ALTER TABLE consumed_failure MODIFY message_id VARBINARY(760) NOT NULL',
    ],
    postgres: [
      `CREATE COLLATION blurred (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`,
      'ALTER TABLE consumed_message ALTER COLUMN message_id TYPE VARCHAR(190) COLLATE blurred',
      'ALTER TABLE outbox_hold ALTER COLUMN message_key TYPE VARCHAR(190) COLLATE "default"',
    ],
    found: { 'tables.collations': 'fault' },
    said: {
      'tables.collations': {
        mysql: ["consumed_message.message_id is utf8mb4_general_ci, which takes 'a' and 'A'", "outbox_hold.message_key is utf8mb4_bin, which takes 'a' and 'a '", 'outbox_held.message_key is utf8mb4_bin', 'outbox_message.payload is latin1_swedish_ci'],
        postgres: ['consumed_message.message_id is collated by blurred', 'outbox_hold.message_key is collated by default'],
      },
    },
  },
  'without keys and indexes, on storage that forgets': {
    mysql: [
      'ALTER TABLE outbox_message DROP INDEX uq_message_id',
      'ALTER TABLE outbox_pending DROP PRIMARY KEY, ENGINE=MyISAM',
      'ALTER TABLE outbox_hold DROP INDEX ix_retry_at',
      // Of an id only the beginning: it serves for nothing.
      'ALTER TABLE consumed_failure DROP INDEX ix_updated_at, DROP PRIMARY KEY, ADD PRIMARY KEY (consumer(10), message_id)',
    ],
    postgres: [
      'ALTER TABLE outbox_message DROP CONSTRAINT outbox_message_message_id_key',
      'CREATE UNIQUE INDEX uq_some ON outbox_message (message_id) WHERE status = 0',
      'ALTER TABLE outbox_pending DROP CONSTRAINT outbox_pending_pkey',
      'ALTER TABLE outbox_pending SET UNLOGGED',
      'DROP INDEX ix_outbox_hold_retry_at',
      'ALTER TABLE consumed_failure DROP CONSTRAINT consumed_failure_pkey',
      'DROP INDEX ix_consumed_failure_updated_at',
    ],
    found: { 'tables.indexes': 'fault', 'tables.storage': 'fault' },
    said: {
      'tables.indexes': {
        mysql: ['outbox_message has no unique key on (message_id)', 'outbox_pending has no primary key on (lane, id)', 'outbox_hold has no index on (lane, retry_at)', 'consumed_failure has no primary key on (consumer, message_id)', 'consumed_failure has no index on (updated_at)'],
        postgres: ['outbox_message has no unique key on (message_id)', 'outbox_pending has no primary key on (lane, id)', 'outbox_hold has no index on (lane, retry_at)', 'consumed_failure has no primary key on (consumer, message_id)', 'consumed_failure has no index on (updated_at)'],
      },
      'tables.storage': { mysql: ['outbox_pending is MyISAM'], postgres: ['outbox_pending is unlogged'] },
    },
  },
  'without a lane, and without some order buckets where there are any': {
    mysql: ['DELETE FROM outbox_lane WHERE lane = 3', 'DELETE FROM outbox_bucket WHERE bucket > 1000'],
    postgres: ['DELETE FROM outbox_lane WHERE lane = 3'],
    found: { 'tables.lanes': 'fault' },
    said: { 'tables.lanes': { mysql: ['the 7 lanes are not 0, 1, 2', '1001 order buckets instead of 1024'], postgres: ['the 7 lanes are not 0, 1, 2'] } },
  },
};

describe.each(SERVERS)('the doctor on %s', (database) => {
  const which = database === 'postgres' ? 'postgres' : 'mysql';

  it.each(Object.keys(BROKEN))('finds a set-up %s', async (name) => {
    const { found, said, ...statements } = BROKEN[name] as Break;
    f = await StoreFixture.open(database);
    for (const statement of statements[which]) await f.query(statement);
    const { wrong, healthy, seen } = await examine(f.dataSource);
    const { 'server.ids': ids, ...everywhere } = found;
    expect(wrong).toEqual(which === 'postgres' && ids ? found : everywhere);
    expect(healthy).toBe(false);
    for (const [check, texts] of Object.entries(said) as [CheckId, NonNullable<Break['said'][CheckId]>][]) {
      for (const text of texts[which]) expect(seen(check)).toContain(text);
      expect(seen(check).split('; ')).toHaveLength(texts[which].length);
    }
  });

  it('finds other lanes than the options say', async () => {
    f = await StoreFixture.open(database);
    expect((await examine(f.dataSource, { lanes: 8 })).wrong).toEqual({});
    expect((await examine(f.dataSource, { lanes: 64 })).wrong).toEqual({ 'tables.lanes': 'fault' });
  });

  it('says what it cannot see, and why: no tables, a table that is locked', async () => {
    f = await StoreFixture.open(database);
    const { dataSource, tables } = f;
    const other = dataSource.createQueryRunner();
    try {
      await other.query(which === 'postgres' ? 'BEGIN' : `LOCK TABLES ${tables.message} WRITE`);
      if (which === 'postgres') await other.query(`LOCK TABLE ${tables.message} IN ACCESS EXCLUSIVE MODE`);
      const locked = await examine(dataSource, { patience: 300 });
      expect(locked.wrong).toMatchObject({ 'messages.lost': 'unknown', 'messages.stranded': 'unknown', 'time.utc': 'unknown' });
      expect(locked.seen('messages.lost')).toContain('no answer in 300 ms');
    } finally {
      await other.query(which === 'postgres' ? 'ROLLBACK' : 'UNLOCK TABLES');
      await other.release();
    }
    // It has let go of what it could not finish.
    expect((await examine(dataSource)).wrong).toEqual({});
    const none = await examine(dataSource, { tables: Object.fromEntries(Object.keys(tables).map((table) => [table, `no_${table}`])) });
    expect(none.wrong).toMatchObject({ 'tables.present': 'fault', 'tables.columns': 'unknown', 'messages.lost': 'unknown' });
    expect(none.healthy).toBe(false);
    expect(none.findings.every(({ advice, verdict }) => (advice === null) === (verdict === 'ok'))).toBe(true);
  });
});

describe.each(DATABASES)('the doctor on %s', (database) => {
  it('finds nothing wrong with an outbox at work, and leaves it as it is', async () => {
    f = await StoreFixture.open(database, 8, { extra: { migrations: outboxMigrations() } });
    const { dataSource } = f;
    expect((await examine(dataSource)).wrong).toEqual({ 'migrations.recorded': 'warning' });
    await dataSource.runMigrations();
    await f.add(...['a', 'b', 'c', 'd', 'e'].map((key) => message({ key })));
    // One is sent, one is held, one is dead; two wait.
    await f.once(({ messages: [one, two, three] }) => ({
      sent: one ? [one] : [],
      retried: two ? [refuse(60_000)(two)] : [],
      parked: three ? [{ message: three, error: 'no', blocks: true }] : [],
    }));
    const counts = (): Promise<number[]> => Promise.all((['message', 'pending', 'hold', 'held', 'dead', 'settled', 'lane'] as const).map((table) => f?.count(table) ?? 0));
    const before = await counts();
    const { wrong, healthy, findings } = await examine(dataSource);
    expect([wrong, healthy]).toEqual([{}, true]);
    expect(findings.length).toBeGreaterThan(7);
    expect(await counts()).toEqual(before);
  });

  it('finds messages that are in no state, out of reach, and of another time', async () => {
    f = await StoreFixture.open(database);
    const { tables } = f;
    await f.add(...['a', 'b', 'c', 'd', 'e'].map((key) => message({ key })));
    expect((await examine(f.dataSource)).wrong).toEqual({});
    const [lost] = await f.query<{ id: number | string }>(`SELECT MIN(id) AS id FROM ${tables.message}`);
    await f.query(`DELETE FROM ${tables.pending} WHERE id = ${String(lost?.id)}`);
    await f.query(`INSERT INTO ${tables.pending} (lane, id, bytes) VALUES (999, ${String(lost?.id)} + 1, 2), (1, 77777, 2)`);
    await f.query(`INSERT INTO ${tables.held} (lane, topic, message_key, id, bytes) VALUES (1, 'orders', 'nobody', ${String(lost?.id)} + 2, 2)`);
    const ahead = database === 'postgres' ? `now() + interval '5 hours'` : database === 'sqlite' ? `strftime('%Y-%m-%d %H:%M:%f', 'now', '5 hours')` : 'NOW(6) + INTERVAL 5 HOUR';
    await f.query(`UPDATE ${tables.message} SET created_at = ${ahead} WHERE id = ${String(lost?.id)} + 3`);
    const { wrong, seen } = await examine(f.dataSource);
    expect(wrong).toEqual({ 'messages.lost': 'fault', 'messages.stranded': 'fault', 'time.utc': 'fault' });
    expect(seen('messages.lost')).toMatch(new RegExp(`^1 messages .*: ${String(lost?.id)}$`));
    for (const text of ['have no message in the log', 'are in lanes that do not exist', '1 keys have messages in']) expect(seen('messages.stranded')).toContain(text);
    expect(seen('time.utc')).toContain('300 minutes from now');
  });
});
