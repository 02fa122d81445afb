import {
  type Dialect,
  laneHasWork,
  MESSAGE_COLUMNS,
  messageValues,
  type NewMessage,
  numberRows,
  quotedTables,
  type Sql,
} from './dialect';
import { hasKey, isOneOf, type Key, type KeyedTable, type Statement } from './key-deletes';
import { type HeadLimits, headsByUnion, type LaneHead } from './lane-heads';
import { SENT_AT, type TableNames } from './tables';

const NOW = `strftime('%Y-%m-%d %H:%M:%f', 'now')`;
const ROW = `(${MESSAGE_COLUMNS.map(() => '?').join(', ')}, ${NOW}, ${NOW})`;

/** SQLite, for demos, tests and single-process apps: there is one connection, so nothing needs a lock. */
export function sqliteDialect(names: TableNames): Dialect {
  const tables = quotedTables(names, (table) => `"${table}"`);

  return {
    name: 'sqlite',
    tables,
    laneLocks: 'none',
    forUpdateSkipLocked: '',
    now: NOW,
    nowPlusMs: `strftime('%Y-%m-%d %H:%M:%f', 'now', (? / 1000.0) || ' seconds')`,
    epochMs: (column) => `CAST(ROUND((julianday(${column}) - 2440587.5) * 86400000) AS INTEGER)`,
    idIn: isOneOf,
    idText: (column) => `CAST(${column} AS TEXT)`,
    bind: (sql) => sql,
    createTables: (lanes) => createTables(tables, names, lanes),
    lastId: 'last_insert_rowid()',
    partitions: null,
    dropTables: () => Object.values(tables).map((table) => `DROP TABLE IF EXISTS ${table}`),

    async insertMessages(sql: Sql, messages: readonly NewMessage[]): Promise<void> {
      // No order buckets: on one connection transactions already follow one another.
      const logged = (await sql.query(
        `INSERT INTO ${tables.message} (${MESSAGE_COLUMNS.join(', ')}, created_at, updated_at)
         VALUES ${messages.map(() => ROW).join(', ')} RETURNING CAST(id AS TEXT) AS id`,
        messages.flatMap(({ message }) => messageValues(message)),
      )) as { id: string }[];
      const rows = messages.map(({ lane, bytes }, index) => `(${lane}, ${logged[index]?.id}, ${bytes})`);
      await sql.query(`INSERT INTO ${tables.pending} (lane, id, bytes) VALUES ${rows.join(', ')}`);
    },

    async lockLanes(sql: Sql, first: number, end: number, limit: number): Promise<readonly number[]> {
      const rows = (await sql.query(
        `SELECT l.lane AS lane FROM ${tables.lane} l WHERE l.lane >= ${first} AND l.lane < ${end}
         AND ${laneHasWork({ tables, now: NOW })} ORDER BY l.lane LIMIT ${limit}`,
      )) as { lane: number }[];
      return rows.map((row) => row.lane);
    },

    async waitForLanes(): Promise<void> {
      // A claim has them by the store's turn.
    },

    readHeads(sql: Sql, lanes: readonly number[], limits: HeadLimits): Promise<readonly LaneHead[]> {
      return headsByUnion(sql, this, lanes, limits);
    },

    async unlockLanes(): Promise<void> {
      // Nothing is locked.
    },

    lockCleaner: async () => true,

    deleteByKey(table: KeyedTable, keys: readonly Key[], condition?: string): Statement {
      const { sql, parameters } = hasKey(table, keys);
      return { sql: `DELETE FROM ${tables[table]} AS t WHERE ${sql}${condition === undefined ? '' : ` AND ${condition}`}`, parameters };
    },
    updateByKey: (table) => `UPDATE ${table} AS t`,
    replaceHold: 'ON CONFLICT (lane, topic, message_key) DO UPDATE SET retry_at = excluded.retry_at, state = excluded.state',
    sessionSettings: () => [],
    isolationQuery: `SELECT 'serializable'`,
    commitSignal: null,

    preparePool(): void {
      // Nothing is missing.
    },
    tableSizes: null,

    quit(): void {
      // The connection is the app's.
    },
    abandon(): void {
      // The connection is the app's.
    },

    laneIs: (column, lane) => `${column} = ${lane}`,

    unionAll: (queries) => queries.map((query) => `SELECT * FROM (${query})`).join(' UNION ALL '),

    async insertConsumed(sql: Sql, consumer: string, messageId: string): Promise<boolean> {
      const rows = (await sql.query(
        `INSERT INTO ${tables.consumed} (consumer, message_id, consumed_at) VALUES (?, ?, ${NOW})
         ON CONFLICT DO NOTHING RETURNING 1 AS inserted`,
        [consumer, messageId],
      )) as unknown[];
      return rows.length > 0;
    },

    async insertConsumedBatch(sql: Sql, consumer: string, messageIds: readonly string[]): Promise<readonly string[]> {
      const rows = (await sql.query(
        `INSERT INTO ${tables.consumed} (consumer, message_id, consumed_at)
         VALUES ${messageIds.map(() => `(?, ?, ${NOW})`).join(', ')} ON CONFLICT DO NOTHING RETURNING message_id`,
        messageIds.flatMap((id) => [consumer, id]),
      )) as { message_id: string }[];
      return rows.map((row) => row.message_id);
    },

    async advanceSequence(sql: Sql, consumer: string, key: string, place: string): Promise<string> {
      const rows = (await sql.query(
        `INSERT INTO ${tables.sequence} (consumer, sequence_key, last_place, updated_at)
         VALUES (?, ?, CAST(? AS INTEGER), ${NOW}) ON CONFLICT DO UPDATE SET
         last_place = MAX(last_place, excluded.last_place), updated_at = excluded.updated_at
         RETURNING CAST(last_place AS TEXT) AS place`,
        [consumer, key, place],
      )) as { place: string }[];
      return rows[0]?.place ?? place;
    },

    async countFailure(sql: Sql, consumer: string, messageId: string): Promise<number> {
      const rows = (await sql.query(
        `INSERT INTO ${tables.failure} (consumer, message_id, attempts, updated_at) VALUES (?, ?, 1, ${NOW})
         ON CONFLICT DO UPDATE SET attempts = attempts + 1, updated_at = ${NOW} RETURNING attempts`,
        [consumer, messageId],
      )) as { attempts: number }[];
      return rows[0]?.attempts ?? 1;
    },
  };
}

/** The columns of a message in the log and in the history, but for the id and the time when it was sent. */
const MESSAGE_TABLE_COLUMNS = `message_id TEXT NOT NULL,
  aggregate_type TEXT NOT NULL,
  aggregate_id TEXT NOT NULL,
  message_key TEXT NULL,
  tenant_id TEXT NULL,
  traceparent TEXT NULL,
  correlation_id TEXT NULL,
  causation_id TEXT NULL,
  event_type TEXT NOT NULL,
  topic TEXT NOT NULL,
  headers TEXT NULL,
  payload TEXT NULL,
  status INTEGER NOT NULL DEFAULT 0,
  retry_count INTEGER NOT NULL DEFAULT 0,
  next_retry_at TEXT NULL,
  last_error TEXT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL`;

function createTables(tables: TableNames, names: TableNames, lanes: number): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${tables.message} (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      ${MESSAGE_TABLE_COLUMNS},
      sent_at TEXT GENERATED ALWAYS AS (${SENT_AT}) VIRTUAL,
      UNIQUE (message_id)
    )`,
    `CREATE TABLE IF NOT EXISTS ${tables.pending} (
      lane INTEGER NOT NULL, id INTEGER NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (lane, id)
    ) WITHOUT ROWID`,
    `CREATE TABLE IF NOT EXISTS ${tables.lane} (lane INTEGER PRIMARY KEY, paused INTEGER NOT NULL DEFAULT 0)`,
    `CREATE TABLE IF NOT EXISTS ${tables.hold} (
      lane INTEGER NOT NULL, topic TEXT NOT NULL, message_key TEXT NOT NULL, retry_at TEXT NOT NULL,
      state TEXT NOT NULL, PRIMARY KEY (lane, topic, message_key)
    ) WITHOUT ROWID`,
    `CREATE TABLE IF NOT EXISTS ${tables.held} (
      lane INTEGER NOT NULL, topic TEXT NOT NULL, message_key TEXT NOT NULL, id INTEGER NOT NULL, bytes INTEGER NOT NULL,
      PRIMARY KEY (lane, topic, message_key, id)
    ) WITHOUT ROWID`,
    `CREATE TABLE IF NOT EXISTS ${tables.settled} (
      id INTEGER PRIMARY KEY, settled_at TEXT NOT NULL, ids TEXT NOT NULL
    )`,
    `CREATE TABLE IF NOT EXISTS ${tables.dead} (
      id INTEGER PRIMARY KEY, lane INTEGER NOT NULL, topic TEXT NOT NULL, message_key TEXT NOT NULL
    )`,
    `CREATE TABLE IF NOT EXISTS ${tables.consumed} (
      consumer TEXT NOT NULL, message_id TEXT NOT NULL, consumed_at TEXT NOT NULL,
      dead INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (consumer, message_id)
    ) WITHOUT ROWID`,
    `CREATE TABLE IF NOT EXISTS ${tables.failure} (
      consumer TEXT NOT NULL, message_id TEXT NOT NULL, attempts INTEGER NOT NULL, updated_at TEXT NOT NULL,
      PRIMARY KEY (consumer, message_id)
    ) WITHOUT ROWID`,
    `CREATE TABLE IF NOT EXISTS ${tables.sequence} (
      consumer TEXT NOT NULL, sequence_key TEXT NOT NULL, last_place INTEGER NOT NULL, updated_at TEXT NOT NULL,
      PRIMARY KEY (consumer, sequence_key)
    ) WITHOUT ROWID`,
    `CREATE INDEX IF NOT EXISTS "ix_${names.consumed}_consumed_at" ON ${tables.consumed} (consumed_at)`,
    `CREATE INDEX IF NOT EXISTS "ix_${names.failure}_updated_at" ON ${tables.failure} (updated_at)`,
    `CREATE TABLE IF NOT EXISTS ${tables.audit} (
      id INTEGER PRIMARY KEY AUTOINCREMENT, act TEXT NOT NULL, acted_by TEXT NOT NULL, reason TEXT NOT NULL,
      target TEXT NOT NULL, outcome TEXT NOT NULL, result TEXT NULL, began_at TEXT NOT NULL, ended_at TEXT NULL
    )`,
    `CREATE TABLE IF NOT EXISTS ${tables.auditMessage} (audit_id INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (audit_id, id)) WITHOUT ROWID`,
    `CREATE INDEX IF NOT EXISTS "ix_${names.auditMessage}_id" ON ${tables.auditMessage} (id)`,
    `CREATE TABLE IF NOT EXISTS ${tables.history} (
      id INTEGER PRIMARY KEY,
      ${MESSAGE_TABLE_COLUMNS},
      sent_at TEXT NULL,
      archived_at TEXT NOT NULL
    )`,
    `CREATE INDEX IF NOT EXISTS "ix_${names.history}_archived_at" ON ${tables.history} (archived_at)`,
    `INSERT INTO ${tables.lane} (lane) SELECT column1 FROM (VALUES ${numberRows(lanes)})
     WHERE NOT EXISTS (SELECT 1 FROM ${tables.lane})`,
  ];
}
