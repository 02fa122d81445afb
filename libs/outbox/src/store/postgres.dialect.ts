import { slotOf } from '../event/hash';
import { driverCode, messageInProgress } from './message-in-progress';
import {
  type Dialect,
  laneHasWork,
  type NewMessage,
  numberRows,
  type Patience,
  quotedTables,
  type Sql,
} from './dialect';
import { insertIntoPostgres, NOW } from './postgres-insert';
import { hasKey, type Key, type KeyedTable, type Statement } from './key-deletes';
import { SENT_AT, type TableNames } from './tables';

/** How long a copy of a message waits for another, in terms of lock_timeout. As long as InnoDB waits by default. */
const WAIT = `'50s'`;
const FAIL_AFTER = `'10ms'`;
/** Lock timeout, deadlock, and at higher isolation levels: the other copy has been faster. */
const WAITED_IN_VAIN: ReadonlySet<unknown> = new Set(['55P03', '40P01', '40001']);

/** Unlike clock_timestamp() it does not keep a condition from using an index. */
const STATEMENT_NOW = `(statement_timestamp() AT TIME ZONE 'utc')`;

interface Client {
  on(event: 'error', listener: () => void): void;
}

/** PostgreSQL 13 and later. */
export function postgresDialect(names: TableNames, schema: string | undefined): Dialect {
  const quote = (table: string): string => (schema ? `"${schema}"."${table}"` : `"${table}"`);
  const tables = quotedTables(names, quote);
  // Advisory locks are one space for the whole database: two outboxes in it must not share numbers.
  const laneSpace = slotOf(quote(names.lane), 'lane', 2 ** 31);
  // So are channels.
  const channel = `outbox_${slotOf(quote(names.lane), 'commits', 2 ** 31)}`;
  const bucketSpace = slotOf(quote(names.lane), 'bucket', 2 ** 31);

  const insertConsumed = async (
    sql: Sql,
    consumer: string,
    messageIds: readonly string[],
    patience: Patience,
  ): Promise<readonly string[]> => {
    // PostgreSQL waits for a lock without end. The limit is for this statement only, in one round trip.
    const limit = patience === 'fail' ? FAIL_AFTER : `CASE current_setting('lock_timeout') WHEN '0' THEN ${WAIT} ELSE current_setting('lock_timeout') END`;
    try {
      const rows = (await sql.query(
        `WITH patience AS MATERIALIZED (
           SELECT set_config('outbox.lock_timeout', current_setting('lock_timeout'), true),
             set_config('lock_timeout', ${limit}, true)
         ), recorded AS (
           INSERT INTO ${tables.consumed} (consumer, message_id, consumed_at)
           SELECT $1, ids.id, ${NOW} FROM patience, unnest($2::text[]) WITH ORDINALITY AS ids(id, place) ORDER BY ids.place
           ON CONFLICT DO NOTHING RETURNING message_id
         )
         SELECT (SELECT COALESCE(array_agg(message_id::text), '{}') FROM recorded) AS ids,
           set_config('lock_timeout', current_setting('outbox.lock_timeout'), true)`,
        [consumer, messageIds],
      )) as { ids: string[] }[];
      return rows[0]?.ids ?? [];
    } catch (error) {
      const which = messageIds.length === 1 ? String(messageIds[0]) : `${messageIds[0]} or another of its batch`;
      throw WAITED_IN_VAIN.has(driverCode(error)) ? messageInProgress(consumer, which, error) : error;
    }
  };

  return {
    name: 'postgres',
    tables,
    laneLocks: 'advisory-locks',
    forUpdateSkipLocked: 'FOR UPDATE SKIP LOCKED',
    now: STATEMENT_NOW,
    nowPlusMs: `${STATEMENT_NOW} + ? * INTERVAL '1 millisecond'`,
    epochMs: (column) => `FLOOR(EXTRACT(EPOCH FROM ${column}) * 1000)::float8`,
    idText: (column) => `${column}::text`,
    bind(sql: string): string {
      let index = 0;
      return sql.replaceAll('?', () => `$${++index}`);
    },
    createTables: (lanes) => createTables(tables, names, lanes),
    lastId: 'lastval()',
    dropTables: () => Object.values(tables).map((table) => `DROP TABLE IF EXISTS ${table}`),

    insertMessages(sql: Sql, messages: readonly NewMessage[], buckets: readonly number[]): Promise<void> {
      return insertIntoPostgres(sql, tables, messages, buckets.map((bucket) => `pg_advisory_xact_lock(${bucketSpace}, ${bucket})`));
    },

    async lockLanes(sql: Sql, first: number, end: number, limit: number): Promise<readonly number[]> {
      // OFFSET 0 keeps the planner from testing the lock on lanes that have nothing to send.
      const rows = (await sql.query(
        `SELECT c.lane FROM (
           SELECT l.lane FROM ${tables.lane} l WHERE l.lane >= ${first} AND l.lane < ${end}
           AND ${laneHasWork({ tables, now: STATEMENT_NOW })} ORDER BY l.lane OFFSET 0
         ) c WHERE pg_try_advisory_xact_lock(${laneSpace}, c.lane) LIMIT ${limit}`,
      )) as { lane: number }[];
      return rows.map((row) => Number(row.lane));
    },

    async waitForLanes(sql: Sql, lanes: readonly number[]): Promise<void> {
      const locks = lanes.map((lane) => `pg_advisory_xact_lock(${laneSpace}, ${lane})`);
      await sql.query(`SELECT ${locks.join(', ')}`);
    },

    async unlockLanes(): Promise<void> {
      // The end of the transaction did it.
    },

    async lockCleaner(sql: Sql): Promise<boolean> {
      // Beside the numbers of the lanes.
      const rows = (await sql.query(`SELECT pg_try_advisory_lock(${laneSpace}, -1) AS locked`)) as { locked: boolean }[];
      return rows[0]?.locked === true;
    },

    deleteByKey(table: KeyedTable, keys: readonly Key[], condition?: string): Statement {
      const { sql, parameters } = hasKey(table, keys);
      return { sql: `DELETE FROM ${tables[table]} AS t WHERE ${sql}${condition === undefined ? '' : ` AND ${condition}`}`, parameters };
    },
    updateByKey: (table) => `UPDATE ${table} AS t`,
    replaceHold: 'ON CONFLICT (lane, topic, message_key) DO UPDATE SET retry_at = excluded.retry_at, state = excluded.state',

    sessionSettings: (timeoutMs: number): readonly string[] => [
      'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED',
      ...['idle_in_transaction_session_timeout', 'tcp_user_timeout', 'lock_timeout', 'statement_timeout'].map(
        (timeout) => `SET SESSION ${timeout} = ${timeoutMs}`,
      ),
      // Everything that a relay reads has a key. Where statistics are stale, to scan or to sort looks cheaper.
      ...['enable_seqscan', 'enable_sort'].map((way) => `SET SESSION ${way} = off`),
    ],

    isolationQuery: 'SHOW transaction_isolation',

    // A signal makes a commit of its own, which nobody needs on the disk.
    commitSignal: { send: `SET LOCAL synchronous_commit = off; NOTIFY ${channel}`, listen: `LISTEN ${channel}` },
    tableSizes:
      'SELECT c.relname AS name, GREATEST(c.reltuples, 0)::bigint AS n, pg_total_relation_size(c.oid) AS bytes FROM pg_class c ' +
      `WHERE c.oid IN (${Object.values(tables).map((table) => `to_regclass('${table.replaceAll("'", "''")}')`).join(', ')})`,

    preparePool(driver: object): void {
      const pool = Reflect.get(driver, 'master') as { on(event: 'connect', listener: (client: Client) => void): void };
      // A client that is ended by the packet that lets it in has no listener yet, and an error that nobody hears ends
      // the process.
      pool.on('connect', (client) => client.on('error', () => undefined));
    },

    // Says goodbye when no query is running, and else ends the socket at once.
    quit: end,
    abandon: end,

    // With stale statistics an equality is looked up in some other index, and sorted.
    laneIs: (column, lane) => `${column} BETWEEN ${lane} AND ${lane}`,

    unionAll: (queries) => queries.map((query) => `(${query})`).join(' UNION ALL '),

    async insertConsumed(sql: Sql, consumer: string, messageId: string, patience: Patience): Promise<boolean> {
      return (await insertConsumed(sql, consumer, [messageId], patience)).length === 1;
    },

    insertConsumedBatch: insertConsumed,

    async advanceSequence(sql: Sql, consumer: string, key: string, place: string): Promise<string> {
      const rows = (await sql.query(
        `INSERT INTO ${tables.sequence} AS s (consumer, sequence_key, last_place, updated_at) VALUES ($1, $2, $3, ${NOW})
         ON CONFLICT (consumer, sequence_key) DO UPDATE SET
         last_place = GREATEST(s.last_place, EXCLUDED.last_place), updated_at = EXCLUDED.updated_at
         RETURNING last_place::text AS place`,
        [consumer, key, place],
      )) as { place: string }[];
      return rows[0]?.place ?? place;
    },

    async countFailure(sql: Sql, consumer: string, messageId: string): Promise<number> {
      const rows = (await sql.query(
        `INSERT INTO ${tables.failure} AS f (consumer, message_id, attempts, updated_at) VALUES ($1, $2, 1, ${NOW})
         ON CONFLICT (consumer, message_id) DO UPDATE SET attempts = f.attempts + 1, updated_at = ${NOW}
         RETURNING attempts`,
        [consumer, messageId],
      )) as { attempts: number }[];
      return rows[0]?.attempts ?? 1;
    },
  };
}

function end(connection: unknown): void {
  void (connection as { end(): Promise<void> }).end().catch(() => undefined);
}

function createTables(tables: TableNames, names: TableNames, lanes: number): readonly string[] {
  const text = 'VARCHAR(190) COLLATE "C"';
  const topic = 'VARCHAR(249) COLLATE "C" NOT NULL';
  return [
    `CREATE TABLE IF NOT EXISTS ${tables.message} (
      id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
      message_id CHAR(36) COLLATE "C" NOT NULL UNIQUE,
      aggregate_type VARCHAR(249) COLLATE "C" NOT NULL,
      aggregate_id ${text} NOT NULL,
      message_key ${text} NULL,
      tenant_id ${text} NULL,
      traceparent ${text} NULL,
      correlation_id ${text} NULL,
      causation_id ${text} NULL,
      event_type ${text} NOT NULL,
      topic ${topic},
      headers TEXT NULL,
      payload TEXT NULL,
      status SMALLINT NOT NULL DEFAULT 0,
      retry_count INT NOT NULL DEFAULT 0,
      next_retry_at TIMESTAMP(6) NULL,
      last_error TEXT NULL,
      created_at TIMESTAMP(6) NOT NULL,
      updated_at TIMESTAMP(6) NOT NULL,
      sent_at TIMESTAMP(6) GENERATED ALWAYS AS (${SENT_AT}) STORED
    )`,
    `CREATE TABLE IF NOT EXISTS ${tables.pending} (
      lane SMALLINT NOT NULL, id BIGINT NOT NULL, bytes INT NOT NULL, PRIMARY KEY (lane, id)
    )`,
    `CREATE TABLE IF NOT EXISTS ${tables.lane} (lane SMALLINT PRIMARY KEY, paused SMALLINT NOT NULL DEFAULT 0)`,
    `CREATE TABLE IF NOT EXISTS ${tables.hold} (
      lane SMALLINT NOT NULL, topic ${topic}, message_key ${text} NOT NULL, retry_at TIMESTAMP(6) NOT NULL,
      state VARCHAR(10) NOT NULL, PRIMARY KEY (lane, topic, message_key)
    )`,
    `CREATE INDEX IF NOT EXISTS "ix_${names.hold}_retry_at" ON ${tables.hold} (lane, retry_at)`,
    `CREATE TABLE IF NOT EXISTS ${tables.held} (
      lane SMALLINT NOT NULL, topic ${topic}, message_key ${text} NOT NULL, id BIGINT NOT NULL, bytes INT NOT NULL,
      PRIMARY KEY (lane, topic, message_key, id)
    )`,
    `CREATE TABLE IF NOT EXISTS ${tables.settled} (
      id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, settled_at TIMESTAMP(6) NOT NULL, ids TEXT NOT NULL
    )`,
    `CREATE TABLE IF NOT EXISTS ${tables.dead} (
      id BIGINT PRIMARY KEY, lane SMALLINT NOT NULL, topic ${topic}, message_key ${text} NOT NULL
    )`,
    `CREATE TABLE IF NOT EXISTS ${tables.consumed} (
      consumer VARCHAR(100) COLLATE "C" NOT NULL, message_id ${text} NOT NULL, consumed_at TIMESTAMP(6) NOT NULL,
      dead SMALLINT NOT NULL DEFAULT 0,
      PRIMARY KEY (consumer, message_id)
    )`,
    `CREATE TABLE IF NOT EXISTS ${tables.failure} (
      consumer VARCHAR(100) COLLATE "C" NOT NULL, message_id ${text} NOT NULL, attempts INT NOT NULL,
      updated_at TIMESTAMP(6) NOT NULL, PRIMARY KEY (consumer, message_id)
    )`,
    `CREATE TABLE IF NOT EXISTS ${tables.sequence} (
      consumer VARCHAR(100) COLLATE "C" NOT NULL, sequence_key ${text} NOT NULL, last_place BIGINT NOT NULL,
      updated_at TIMESTAMP(6) NOT NULL, PRIMARY KEY (consumer, sequence_key)
    )`,
    `CREATE INDEX IF NOT EXISTS "ix_${names.consumed}_consumed_at" ON ${tables.consumed} (consumed_at)`,
    `CREATE INDEX IF NOT EXISTS "ix_${names.failure}_updated_at" ON ${tables.failure} (updated_at)`,
    `CREATE TABLE IF NOT EXISTS ${tables.audit} (
      id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, act VARCHAR(40) NOT NULL, acted_by VARCHAR(190) NOT NULL, reason VARCHAR(500) NOT NULL,
      target TEXT NOT NULL, outcome VARCHAR(10) NOT NULL, result TEXT NULL, began_at TIMESTAMP(6) NOT NULL, ended_at TIMESTAMP(6) NULL
    )`,
    `CREATE TABLE IF NOT EXISTS ${tables.auditMessage} (
      audit_id BIGINT NOT NULL, id BIGINT NOT NULL, PRIMARY KEY (audit_id, id)
    )`,
    `CREATE INDEX IF NOT EXISTS "ix_${names.auditMessage}_id" ON ${tables.auditMessage} (id)`,
    `CREATE TABLE IF NOT EXISTS ${tables.history} (
      LIKE ${tables.message} INCLUDING DEFAULTS, archived_at TIMESTAMP(6) NOT NULL, PRIMARY KEY (id)
    )`,
    `INSERT INTO ${tables.lane} (lane) SELECT n FROM (VALUES ${numberRows(lanes)}) numbers(n)
     WHERE NOT EXISTS (SELECT 1 FROM ${tables.lane})`,
  ];
}
