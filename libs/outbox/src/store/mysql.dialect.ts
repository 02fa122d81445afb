import {
  type Dialect,
  laneHasWork,
  MESSAGE_COLUMNS,
  messageValues,
  type NewMessage,
  type Patience,
  quotedTables,
  type Sql,
} from './dialect';
import { driverCode, messageInProgress } from './message-in-progress';
import { ORDER_BUCKETS, type TableNames } from './tables';

const WAITED_IN_VAIN: ReadonlySet<unknown> = new Set(['ER_LOCK_WAIT_TIMEOUT', 'ER_LOCK_DEADLOCK']);

const ROW = `(${MESSAGE_COLUMNS.map(() => '?').join(', ')}, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))`;
const COLUMNS = `${MESSAGE_COLUMNS.join(', ')}, created_at, updated_at`;

/** MySQL 8.0.17 and later, and MariaDB 10.6 and later. */
export function mysqlDialect(name: 'mysql' | 'mariadb', names: TableNames): Dialect {
  const tables = quotedTables(names, (table) => `\`${table}\``);
  const now = 'UTC_TIMESTAMP(6)';

  return {
    name,
    tables,
    now,
    nowPlusMs: 'UTC_TIMESTAMP(6) + INTERVAL (? * 1000) MICROSECOND',
    epochMs: (column) => `FLOOR(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', ${column}) / 1000)`,
    idText: (column) => `CAST(${column} AS CHAR)`,
    bind: (sql) => sql,
    createTables: (lanes) => createTables(name, tables, lanes),
    dropTables: () => Object.values(tables).map((table) => `DROP TABLE IF EXISTS ${table}`),

    async lockBuckets(sql: Sql, buckets: readonly number[]): Promise<void> {
      await sql.query(
        `SELECT bucket FROM ${tables.bucket} WHERE bucket IN (${buckets.join(', ')}) ORDER BY bucket FOR UPDATE`,
      );
    },

    async insertMessages(sql: Sql, messages: readonly NewMessage[]): Promise<void> {
      await sql.query(
        `INSERT INTO ${tables.message} (${COLUMNS}) VALUES ${messages.map(() => ROW).join(', ')}`,
        messages.flatMap(({ message }) => messageValues(message)),
      );
      // The ids of one INSERT … VALUES are consecutive, in steps of auto_increment_increment, in every
      // innodb_autoinc_lock_mode; LAST_INSERT_ID() is the first of them, and no id passes through JavaScript.
      const rows = messages.map(
        ({ lane, bytes }, index) =>
          `(${lane}, LAST_INSERT_ID() + ${index} * @@SESSION.auto_increment_increment, ${bytes})`,
      );
      await sql.query(`INSERT INTO ${tables.pending} (lane, id, bytes) VALUES ${rows.join(', ')}`);
    },

    async lockLanes(sql: Sql, first: number, limit: number): Promise<readonly number[]> {
      const rows = (await sql.query(
        `SELECT l.lane AS lane FROM ${tables.lane} l WHERE l.lane >= ${first} AND ${laneHasWork({ tables, now })} ` +
          `ORDER BY l.lane LIMIT ${limit} FOR UPDATE SKIP LOCKED`,
      )) as { lane: number }[];
      return rows.map((row) => Number(row.lane));
    },

    unionAll: (queries) => queries.map((query) => `(${query})`).join(' UNION ALL '),

    async insertConsumed(sql: Sql, consumer: string, messageId: string, patience: Patience): Promise<boolean> {
      const insert = `INSERT INTO ${tables.consumed} (consumer, message_id, consumed_at) VALUES (?, ?, ${now})`;
      try {
        const send = (prefix = ''): Promise<unknown> => sql.query(`${prefix}${insert}`, [consumer, messageId]);
        if (patience === 'wait') await send();
        else if (name === 'mariadb') await send('SET STATEMENT innodb_lock_wait_timeout = 0 FOR ');
        else await withShortestWait(sql, send);
        return true;
      } catch (error) {
        // Not INSERT IGNORE: it would take other faults for a repeat. A duplicate undoes only its statement.
        if (driverCode(error) === 'ER_DUP_ENTRY') return false;
        throw WAITED_IN_VAIN.has(driverCode(error)) ? messageInProgress(consumer, messageId, error) : error;
      }
    },

    async countFailure(sql: Sql, consumer: string, messageId: string): Promise<number> {
      await sql.query(
        `INSERT INTO ${tables.failure} (consumer, message_id, attempts, updated_at) VALUES (?, ?, 1, ${now})
         ON DUPLICATE KEY UPDATE attempts = attempts + 1, updated_at = ${now}`,
        [consumer, messageId],
      );
      const rows = (await sql.query(
        `SELECT attempts FROM ${tables.failure} WHERE consumer = ? AND message_id = ?`,
        [consumer, messageId],
      )) as { attempts: number }[];
      return rows[0]?.attempts ?? 1;
    },
  };
}

/** MySQL has no INSERT that does not wait: a second is the least. */
async function withShortestWait(sql: Sql, send: () => Promise<unknown>): Promise<void> {
  // COALESCE: the session's own setting, also when a deadlock has kept an earlier call from putting it back.
  await sql.query(
    'SET @outbox_wait = COALESCE(@outbox_wait, @@SESSION.innodb_lock_wait_timeout), SESSION innodb_lock_wait_timeout = 1',
  );
  const putBack = (): Promise<unknown> => sql.query('SET SESSION innodb_lock_wait_timeout = @outbox_wait');
  try {
    await send();
  } catch (error) {
    await putBack().catch(() => undefined);
    throw error;
  }
  await putBack();
}

function createTables(name: 'mysql' | 'mariadb', tables: TableNames, lanes: number): readonly string[] {
  // Keys compare byte for byte: utf8mb4_bin would take 'a' and 'a ' for the same.
  const collation = name === 'mysql' ? 'utf8mb4_0900_bin' : 'utf8mb4_nopad_bin';
  const engine = `ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE ${collation}`;
  const topic = 'VARCHAR(249) CHARACTER SET ascii COLLATE ascii_bin NOT NULL';
  return [
    `CREATE TABLE IF NOT EXISTS ${tables.message} (
      id BIGINT NOT NULL AUTO_INCREMENT,
      message_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
      aggregate_type VARCHAR(249) NOT NULL,
      aggregate_id VARCHAR(190) NOT NULL,
      message_key VARCHAR(190) NULL,
      tenant_id VARCHAR(190) NULL,
      traceparent VARCHAR(190) NULL,
      correlation_id VARCHAR(190) NULL,
      causation_id VARCHAR(190) NULL,
      event_type VARCHAR(190) NOT NULL,
      topic ${topic},
      headers MEDIUMTEXT NULL,
      payload MEDIUMTEXT NULL,
      status TINYINT NOT NULL DEFAULT 0,
      retry_count INT NOT NULL DEFAULT 0,
      next_retry_at DATETIME(6) NULL,
      last_error TEXT NULL,
      created_at DATETIME(6) NOT NULL,
      updated_at DATETIME(6) NOT NULL,
      sent_at DATETIME(6) NULL,
      PRIMARY KEY (id),
      UNIQUE KEY uq_message_id (message_id)
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.pending} (
      lane SMALLINT NOT NULL, id BIGINT NOT NULL, bytes INT NOT NULL, PRIMARY KEY (lane, id)
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.lane} (lane SMALLINT NOT NULL PRIMARY KEY) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.bucket} (bucket SMALLINT NOT NULL PRIMARY KEY) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.hold} (
      topic ${topic}, message_key VARCHAR(190) NOT NULL, lane SMALLINT NOT NULL, retry_at DATETIME(6) NOT NULL,
      PRIMARY KEY (topic, message_key), KEY ix_lane (lane, retry_at)
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.held} (
      topic ${topic}, message_key VARCHAR(190) NOT NULL, id BIGINT NOT NULL, bytes INT NOT NULL,
      PRIMARY KEY (topic, message_key, id)
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.consumed} (
      consumer VARCHAR(100) NOT NULL, message_id VARCHAR(190) NOT NULL, consumed_at DATETIME(6) NOT NULL,
      PRIMARY KEY (consumer, message_id)
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.failure} (
      consumer VARCHAR(100) NOT NULL, message_id VARCHAR(190) NOT NULL, attempts INT NOT NULL,
      updated_at DATETIME(6) NOT NULL, PRIMARY KEY (consumer, message_id)
    ) ${engine}`,
    ...fillOnce(tables.lane, 'lane', lanes),
    ...fillOnce(tables.bucket, 'bucket', ORDER_BUCKETS),
  ];
}

/** Fills a table of numbers, unless it has rows: another number of lanes must not be mixed in. */
function fillOnce(table: string, column: string, count: number): readonly string[] {
  const numbers = Array.from({ length: count }, (_, index) => `SELECT ${index} AS n`).join(' UNION ALL ');
  return [
    `INSERT INTO ${table} (${column}) SELECT n FROM (${numbers}) numbers ` +
      `WHERE NOT EXISTS (SELECT 1 FROM (SELECT 1 FROM ${table} LIMIT 1) filled)`,
  ];
}
