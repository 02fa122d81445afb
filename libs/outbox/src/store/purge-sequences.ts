import type { ChangingSql } from './connection';
import type { Dialect } from './dialect';
import { hasKey, type Key } from './key-deletes';
import type { Purged, PurgeLimits } from './purge';

interface SequenceRow {
  readonly consumer: string;
  readonly key: string;
  readonly isDue: boolean;
}

/**
 * Takes away how far keys are that no event has come for in so long. The table is walked in the order of its key: an index on
 * the time would cost every event that is handled. A key that a consumer is working on is passed by.
 *
 * @param after what the call before has answered as `next`, `'0'` for the first
 */
export async function purgeSequences(sql: ChangingSql, dialect: Dialect, after: string, limits: PurgeLimits): Promise<Purged> {
  const { tables, bind, nowPlusMs, deleteByKey, forUpdateSkipLocked } = dialect;
  const rows = await readStretch(sql, dialect, after, limits);
  const last = rows.at(-1);
  const next = last && rows.length === limits.rows ? JSON.stringify([last.consumer, last.key]) : null;
  const due: Key[] = rows.filter(({ isDue }) => isDue).map(({ consumer, key }) => [consumer, key]);
  if (due.length === 0) return { purged: 0, next };
  const which = hasKey('sequence', due);
  const locked = (await sql.query(
    bind(
      `SELECT t.consumer AS consumer, t.sequence_key AS sequence_key FROM ${tables.sequence} t
       WHERE ${which.sql} AND t.updated_at < ${nowPlusMs} ${forUpdateSkipLocked}`,
    ),
    [...which.parameters, -limits.age],
  )) as { consumer: string; sequence_key: string }[];
  if (locked.length === 0) return { purged: 0, next };
  const { sql: statement, parameters } = deleteByKey('sequence', locked.map(({ consumer, sequence_key }) => [consumer, sequence_key]));
  return { purged: await sql.change(bind(statement), parameters), next };
}

/** The rest of the consumer's keys, and then those of the others: no database walks on from a pair in one condition well. */
async function readStretch(sql: ChangingSql, dialect: Dialect, after: string, limits: PurgeLimits): Promise<readonly SequenceRow[]> {
  const { tables, bind, nowPlusMs } = dialect;
  const [consumer, key] = after === '0' ? ['', ''] : (JSON.parse(after) as [string, string]);
  const read = async (where: string, parameters: readonly string[], rows: number): Promise<readonly SequenceRow[]> =>
    ((await sql.query(
      bind(
        `SELECT t.consumer AS consumer, t.sequence_key AS sequence_key, CASE WHEN t.updated_at < ${nowPlusMs} THEN 1 ELSE 0 END AS due
         FROM ${tables.sequence} t WHERE ${where} ORDER BY t.consumer, t.sequence_key LIMIT ${rows}`,
      ),
      [-limits.age, ...parameters],
    )) as { consumer: string; sequence_key: string; due: number | string }[]).map((row) => ({
      consumer: row.consumer,
      key: row.sequence_key,
      isDue: Number(row.due) === 1,
    }));
  const first = consumer === '' ? [] : await read('t.consumer = ? AND t.sequence_key > ?', [consumer, key], limits.rows);
  if (first.length === limits.rows) return first;
  return [...first, ...(await read('t.consumer > ?', [consumer], limits.rows - first.length))];
}
