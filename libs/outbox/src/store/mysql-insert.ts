import { MESSAGE_COLUMNS, messageValues, type NewMessage, type Sql } from './dialect';
import type { TableNames } from './tables';

/**
 * How new messages are written, in one transaction that may be waiting for locks meanwhile. Each statement is a round
 * trip, and they are what a transaction pays.
 *
 * `statements`: the locks, the log and the pending table one after the other. `locking-insert`: a single message with
 * its lock in one statement; only with innodb_autoinc_lock_mode 2, since in the others it would keep all other inserts
 * waiting until it has the lock. `block`: everything in one, as a block of MariaDB's.
 */
export type InsertWay = 'statements' | 'locking-insert' | 'block';

type Insert = (sql: Sql, tables: TableNames, messages: readonly NewMessage[], buckets: readonly number[]) => Promise<void>;

const NOW = 'UTC_TIMESTAMP(6)';
const COLUMNS = `${MESSAGE_COLUMNS.join(', ')}, created_at, updated_at`;
const VALUES = `${MESSAGE_COLUMNS.map(() => '?').join(', ')}, ${NOW}, ${NOW}`;

export const INSERTS: Readonly<Record<InsertWay, Insert>> = {
  async statements(sql, tables, messages, buckets) {
    if (buckets.length > 0) await sql.query(`SELECT bucket FROM ${tables.bucket} WHERE bucket IN (${buckets.join(', ')}) ORDER BY bucket FOR UPDATE`);
    await sql.query(log(tables, messages), valuesOf(messages));
    await sql.query(pending(tables, messages));
  },

  async 'locking-insert'(sql, tables, messages, buckets) {
    if (messages.length !== 1 || buckets.length !== 1) return INSERTS.statements(sql, tables, messages, buckets);
    const result = (await sql.query(
      `INSERT INTO ${tables.message} (${COLUMNS}) SELECT ${VALUES} FROM ${tables.bucket} WHERE bucket = ${buckets[0]} FOR UPDATE`,
      valuesOf(messages),
    )) as { affectedRows: number };
    if (result.affectedRows !== 1) throw new Error(`${tables.bucket} has no row ${buckets[0]}: somebody has edited it. Nothing was written.`);
    await sql.query(pending(tables, messages));
  },

  async block(sql, tables, messages, buckets) {
    // Into a variable of the block: what a SELECT answers would come back, too. The key is read in ascending order.
    const locks = `SELECT COUNT(*) INTO locked FROM ${tables.bucket} FORCE INDEX (PRIMARY) WHERE bucket IN (${buckets.join(', ')}) FOR UPDATE; `;
    await sql.query(
      `BEGIN NOT ATOMIC ${buckets.length > 0 ? `DECLARE locked INT; ${locks}` : ''}${log(tables, messages)}; ${pending(tables, messages)}; END`,
      valuesOf(messages),
    );
  },
};

function log(tables: TableNames, messages: readonly NewMessage[]): string {
  return `INSERT INTO ${tables.message} (${COLUMNS}) VALUES ${messages.map(() => `(${VALUES})`).join(', ')}`;
}

/**
 * The ids of one INSERT … VALUES are consecutive, in steps of auto_increment_increment, in every
 * innodb_autoinc_lock_mode; LAST_INSERT_ID() is the first of them, and no id passes through JavaScript.
 */
function pending(tables: TableNames, messages: readonly NewMessage[]): string {
  const rows = messages.map(({ lane, bytes }, index) => `(${lane}, LAST_INSERT_ID() + ${index} * @@SESSION.auto_increment_increment, ${bytes})`);
  return `INSERT INTO ${tables.pending} (lane, id, bytes) VALUES ${rows.join(', ')}`;
}

function valuesOf(messages: readonly NewMessage[]): unknown[] {
  return messages.flatMap(({ message }) => messageValues(message));
}
