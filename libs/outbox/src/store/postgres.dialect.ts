import { slotOf } from '../event/hash';
import { driverCode } from './driver-code';
import { messageInProgress } from './message-in-progress';
import {
  type Dialect,
  laneHasWork,
  type Patience,
  quotedTables,
  type Sql,
} from './dialect';
import { NOW, PostgresInsert } from './postgres-insert';
import { hasKey, type Key, type KeyedTable, type Statement } from './key-deletes';
import type { HeadLimits, LaneHead } from './lane-heads';
import { postgresPartitions } from './postgres-partitions';
import { PreparedStatements } from './postgres-prepared';
import { createTables } from './postgres-tables';
import type { TableNames } from './tables';

/** How long a copy of a message waits for another, in terms of lock_timeout: as the session has it, or as InnoDB does by default. */
const WAIT = `CASE current_setting('lock_timeout') WHEN '0' THEN '50s' ELSE current_setting('lock_timeout') END`;
const FAIL_AFTER = `'10ms'`;
/** Lock timeout, deadlock, and at higher isolation levels: the other copy has been faster. */
const WAITED_IN_VAIN: ReadonlySet<unknown> = new Set(['55P03', '40P01', '40001']);

/** Unlike clock_timestamp() it does not keep a condition from using an index. */
const STATEMENT_NOW = `(statement_timestamp() AT TIME ZONE 'utc')`;

/** As one text, which is read faster than a list of numbers. */
const idIn = (column: string, ids: readonly string[]): string => `${column} = ANY('{${ids.join(',')}}'::bigint[])`;

interface Client {
  on(event: 'error', listener: () => void): void;
}

/** Where the tables are, and how they are reached. */
export interface PostgresPlace {
  /** That the data source names. */
  readonly schema?: string | undefined;
  /** The schema that the tables are in, where `schema` leaves it to the search path. */
  readonly home?: string | undefined;
  /** Whether each connection has a session of the server for itself. Default false. */
  readonly ownSessions?: boolean;
}

/** PostgreSQL 13 and later. */
export function postgresDialect(names: TableNames, { schema, home = schema, ownSessions = false }: PostgresPlace = {}): Dialect {
  const quote = (table: string): string => (schema ? `"${schema}"."${table}"` : `"${table}"`);
  const tables = quotedTables(names, quote);
  // Advisory locks are one space for the whole database: two outboxes in it must not share numbers, and one must have the
  // same for all, whether they name the schema or have it by their search path.
  const identity = home === undefined || home === 'public' ? `"${names.lane}"` : `"${home}"."${names.lane}"`;
  const laneSpace = slotOf(identity, 'lane', 2 ** 31);
  // So are channels.
  const channel = `outbox_${slotOf(identity, 'commits', 2 ** 31)}`;
  const idSequence = quote(`${names.message}_id_seq`);
  const statements = new PreparedStatements(ownSessions);
  const insert = new PostgresInsert(tables, slotOf(identity, 'bucket', 2 ** 31), statements);

  /** PostgreSQL waits for a lock without end. The limit is for this statement only, in one round trip. */
  const recordConsumed = (limit: string, ids: string, answer: string): string =>
    `WITH patience AS MATERIALIZED (SELECT current_setting('lock_timeout') AS own, set_config('lock_timeout', ${limit}, true)), recorded AS (
       INSERT INTO ${tables.consumed} (consumer, message_id, consumed_at) SELECT $1::text, ids.id, ${NOW} FROM patience, (${ids}) ids
       ON CONFLICT DO NOTHING RETURNING message_id
     )
     SELECT (SELECT ${answer} FROM recorded) AS recorded, set_config('lock_timeout', own, true) FROM patience`;
  const recordOne = (limit: string): string => recordConsumed(limit, 'SELECT $2::text AS id', 'COUNT(*)::int');
  const recordMany = (limit: string): string =>
    recordConsumed(limit, 'SELECT i.id FROM unnest($2::text[]) WITH ORDINALITY AS i(id, place) ORDER BY i.place', 'array_agg(message_id::text)');
  const records: Readonly<Record<Patience, { readonly one: string; readonly many: string }>> = {
    wait: { one: recordOne(WAIT), many: recordMany(WAIT) },
    fail: { one: recordOne(FAIL_AFTER), many: recordMany(FAIL_AFTER) },
  };
  const toConsumeError = (error: unknown, consumer: string, which: string): unknown =>
    WAITED_IN_VAIN.has(driverCode(error)) ? messageInProgress(consumer, which, error) : error;

  // OFFSET 0 keeps the planner from testing the lock on lanes that have nothing to send.
  const lockLanes =
    `SELECT c.lane FROM (
       SELECT l.lane FROM ${tables.lane} l WHERE l.lane >= $1::int AND l.lane < $2::int
       AND ${laneHasWork({ tables, now: STATEMENT_NOW })} ORDER BY l.lane OFFSET 0
     ) c WHERE pg_try_advisory_xact_lock(${laneSpace}, c.lane) LIMIT $3::int`;
  const readHeads =
    `SELECT p.lane, p.id::text AS id, p.bytes, '' AS topic, '' AS message_key, -1 AS due
     FROM unnest($1::int[]) l(lane) CROSS JOIN LATERAL (
       SELECT p.lane, p.id, p.bytes FROM ${tables.pending} p WHERE p.lane = l.lane ORDER BY p.lane, p.id LIMIT $2::int
     ) p
     UNION ALL
     SELECT h.lane, '', 0, h.topic, h.message_key, CASE WHEN h.retry_at <= ${STATEMENT_NOW} THEN 1 ELSE 0 END
     FROM unnest($1::int[]) l(lane) CROSS JOIN LATERAL (
       SELECT h.lane, h.topic, h.message_key, h.retry_at FROM ${tables.hold} h WHERE h.lane = l.lane
       ORDER BY h.lane, h.retry_at LIMIT $3::int
     ) h`;

  return {
    name: 'postgres',
    tables,
    laneLocks: 'advisory-locks',
    forUpdateSkipLocked: 'FOR UPDATE SKIP LOCKED',
    now: STATEMENT_NOW,
    nowPlusMs: `${STATEMENT_NOW} + ? * INTERVAL '1 millisecond'`,
    epochMs: (column) => `FLOOR(EXTRACT(EPOCH FROM ${column}) * 1000)::float8`,
    idIn,
    idText: (column) => `${column}::text`,
    bind(sql: string): string {
      let index = 0;
      return sql.replaceAll('?', () => `$${++index}`);
    },
    createTables: (lanes, partitioned = false) => createTables(tables, { names, lanes, partitioned, idSequence }),
    partitions: postgresPartitions({ tables, names, quote, idSequence }),
    lastId: 'lastval()',
    dropTables: () => Object.values(tables).map((table) => `DROP TABLE IF EXISTS ${table}`),

    insertMessages: (sql, messages, buckets) => insert.insert(sql, messages, buckets),

    async lockLanes(sql: Sql, first: number, end: number, limit: number): Promise<readonly number[]> {
      const rows = (await statements.query(sql, lockLanes, [first, end, limit])) as { lane: number }[];
      return rows.map((row) => Number(row.lane));
    },

    async readHeads(sql: Sql, lanes: readonly number[], { pending, holds }: HeadLimits): Promise<readonly LaneHead[]> {
      return (await statements.query(sql, readHeads, [lanes, pending, holds])) as LaneHead[];
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
      const { sql, parameters } = hasKey(table, keys, idIn);
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
      // What a partitioned table has is in its partitions.
      'SELECT c.relname AS name, SUM(GREATEST(p.reltuples, 0))::bigint AS n, SUM(pg_total_relation_size(p.oid))::bigint AS bytes ' +
      'FROM pg_class c LEFT JOIN pg_inherits i ON i.inhparent = c.oid AND c.relkind = \'p\' JOIN pg_class p ON p.oid = COALESCE(i.inhrelid, c.oid) ' +
      `WHERE c.oid IN (${Object.values(tables).map((table) => `to_regclass('${table.replaceAll("'", "''")}')`).join(', ')}) GROUP BY c.relname`,

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
      try {
        const rows = (await statements.query(sql, records[patience].one, [consumer, messageId])) as { recorded: number }[];
        return rows[0]?.recorded === 1;
      } catch (error) {
        throw toConsumeError(error, consumer, messageId);
      }
    },

    async insertConsumedBatch(sql: Sql, consumer: string, messageIds: readonly string[], patience: Patience): Promise<readonly string[]> {
      try {
        const rows = (await sql.query(records[patience].many, [consumer, messageIds])) as { recorded: readonly string[] | null }[];
        return rows[0]?.recorded ?? [];
      } catch (error) {
        throw toConsumeError(error, consumer, `${messageIds[0]} or another of its batch`);
      }
    },

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
