import type { ChangingSql } from './connection';
import { type Dialect, MESSAGE_COLUMNS } from './dialect';
import { KEY_COLUMNS } from './key-deletes';

/** What becomes of a row of the log that has grown old: it is deleted, or moved to the history. */
export type PurgeMode = 'delete' | 'archive';

export interface PurgeLimits {
  /** Rows younger than this, in ms by the database's clock, stay. */
  readonly age: number;
  /** Rows that one call looks at. */
  readonly rows: number;
  /** Where the part of the log ends that is meant; its end when missing. */
  readonly below?: bigint;
}

/** What one call has done. `next` is where the next one begins; `null` when nothing is left that is old enough. */
export interface Purged {
  readonly purged: number;
  readonly next: string | null;
}

/** Sent, or discarded by an operator. */
const ENDED = 'status IN (1, 3)';
const DEAD = 'status = 2';

const LOG_COLUMNS = ['id', ...MESSAGE_COLUMNS, 'status', 'retry_count', 'next_retry_at', 'last_error', 'created_at', 'updated_at', 'sent_at'].join(', ');

/**
 * Takes old messages that were sent out of the log, a stretch of it at a time, in a transaction of the caller's at READ
 * COMMITTED. The log is looked at in the order of its key, without a lock; what goes is named by its key, so nothing
 * else is read or locked, and a replica that repeats the statement deletes the same rows.
 *
 * @param after id behind which to begin, `'0'` for the first
 */
export async function purgeSent(sql: ChangingSql, dialect: Dialect, after: string, limits: PurgeLimits, mode: PurgeMode): Promise<Purged> {
  const { tables, bind, idText, nowPlusMs } = dialect;
  const rows = (await sql.query(
    bind(
      `SELECT ${idText('m.id')} AS id, CASE WHEN m.created_at < ${nowPlusMs} THEN 1 ELSE 0 END AS old,
        CASE WHEN m.${ENDED} AND m.updated_at < ${nowPlusMs} THEN 1 ELSE 0 END AS due
       FROM ${tables.message} m WHERE m.id > ${after}${limits.below === undefined ? '' : ` AND m.id < ${limits.below}`} ORDER BY m.id LIMIT ${limits.rows}`,
    ),
    [-limits.age, -limits.age],
  )) as { id: string; old: number; due: number }[];
  const purged = await takeOut(sql, dialect, rows.filter(({ due }) => Number(due) === 1).map(({ id }) => id), ENDED, mode);
  const last = rows.at(-1);
  // Ids follow time but for a transaction's length: behind a young row there is nothing old.
  return { purged, next: last && rows.length === limits.rows && Number(last.old) === 1 ? last.id : null };
}

/** The same for messages that were given up so long ago. */
export async function purgeDead(sql: ChangingSql, dialect: Dialect, after: string, limits: PurgeLimits, mode: PurgeMode): Promise<Purged> {
  const { tables, bind, idText, nowPlusMs, deleteByKey } = dialect;
  const rows = (await sql.query(
    bind(
      `SELECT ${idText('d.id')} AS id, CASE WHEN m.updated_at < ${nowPlusMs} THEN 1 ELSE 0 END AS due
       FROM ${tables.dead} d JOIN ${tables.message} m ON m.id = d.id WHERE d.id > ${after} ORDER BY d.id LIMIT ${limits.rows}`,
    ),
    [-limits.age],
  )) as { id: string; due: number }[];
  const ids = rows.filter(({ due }) => Number(due) === 1).map(({ id }) => id);
  if (ids.length > 0) {
    // First of all, as an operator who requeues does: of two who want a message, one finds it gone.
    const { sql: statement, parameters } = deleteByKey('dead', ids.map((id) => [id]));
    await sql.change(bind(statement), parameters);
  }
  const purged = await takeOut(sql, dialect, ids, DEAD, mode);
  return { purged, next: rows.length === limits.rows ? (rows.at(-1)?.id ?? null) : null };
}

/** The times by which rows grow old, each with an index. */
const TIMES = { consumed: 'consumed_at', failure: 'updated_at', history: 'archived_at' } as const;

/** Takes old rows out of what consumers remember, and out of the history. `next` is a time. */
export async function purgeByTime(sql: ChangingSql, dialect: Dialect, table: keyof typeof TIMES, after: string, limits: PurgeLimits): Promise<Purged> {
  const { tables, bind, idText, nowPlusMs, deleteByKey } = dialect;
  const time = TIMES[table];
  const beyond = after === '0' ? [] : [after];
  const columns = KEY_COLUMNS[table].map((column) => `${column === 'id' ? idText('t.id') : `t.${column}`} AS ${column}`);
  const rows = (await sql.query(
    bind(
      `SELECT ${columns.join(', ')}, ${idText(`t.${time}`)} AS at FROM ${tables[table]} t
       WHERE t.${time} < ${nowPlusMs} ${beyond.length > 0 ? `AND t.${time} >= ?` : ''} ORDER BY t.${time} LIMIT ${limits.rows}`,
    ),
    [-limits.age, ...beyond],
  )) as Record<string, string | Buffer>[];
  if (rows.length === 0) return { purged: 0, next: null };
  const keys = rows.map((row) => KEY_COLUMNS[table].map((column) => String(row[column])));
  const { sql: statement, parameters } = deleteByKey(table, keys, `t.${time} < ${nowPlusMs}`);
  const purged = await sql.change(bind(statement), [...parameters, -limits.age]);
  // Where others are ahead nothing is gained by going on.
  return { purged, next: rows.length === limits.rows && purged > 0 ? String(rows.at(-1)?.['at']) : null };
}

/** @throws when the history has not taken what the log has given */
async function takeOut(sql: ChangingSql, dialect: Dialect, ids: readonly string[], state: string, mode: PurgeMode): Promise<number> {
  if (ids.length === 0) return 0;
  const { tables, bind, now, idIn, deleteByKey } = dialect;
  const archived =
    mode === 'archive'
      ? await sql.change(
          `INSERT INTO ${tables.history} (${LOG_COLUMNS}, archived_at) SELECT ${LOG_COLUMNS}, ${now}
           FROM ${tables.message} m WHERE ${idIn('m.id', ids)} AND m.${state} ORDER BY m.id`,
        )
      : undefined;
  const { sql: statement, parameters } = deleteByKey('message', ids.map((id) => [id]), `t.${state}`);
  const deleted = await sql.change(bind(statement), parameters);
  if (archived !== undefined && archived !== deleted) {
    throw new Error(`The history has taken ${archived} rows and the log has given ${deleted}: nothing of it was done.`);
  }
  return deleted;
}
