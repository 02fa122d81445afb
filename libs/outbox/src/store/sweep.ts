import type { ChangingSql } from './connection';
import type { Dialect } from './dialect';

/**
 * What becomes of the log's row of a message that was sent: `mark` writes status 1 and the time into it, `delete`
 * deletes it.
 */
export type SettleMode = 'mark' | 'delete';

/** Batches that one transaction brings up to date at most: where little is sent, each is of a message or two. */
const BATCHES = 100;
/** Characters of ids, of some 2,000 messages: a long transaction is a long write of the database's log, for all others. */
const CHARACTERS = 16_000;

export interface Swept {
  /** How many; 0 when there is nothing left. */
  readonly messages: number;
  /** Whether at least a hundred batches were waiting. */
  readonly isMuchLeft: boolean;
}

/**
 * Brings the log up to date with what was sent, a few batches at a time and away from the relay's hot path. Runs in a
 * transaction of the caller's. Only what a relay has written down as acknowledged is touched, and several sweepers take
 * different batches.
 */
export async function sweep(sql: ChangingSql, dialect: Dialect, mode: SettleMode): Promise<Swept> {
  const { tables, bind, idText, idIn, deleteByKey, updateByKey, forUpdateSkipLocked } = dialect;
  const waiting = (await sql.query(
    `SELECT ${idText('s.id')} AS batch, LENGTH(s.ids) AS size FROM ${tables.settled} s ORDER BY s.id LIMIT ${BATCHES} ${forUpdateSkipLocked}`,
  )) as { batch: string; size: number | string }[];
  if (waiting.length === 0) return { messages: 0, isMuchLeft: false };
  const taken = takenOf(waiting);
  const batches = (await sql.query(
    `SELECT ${idText('s.id')} AS batch, s.ids AS ids FROM ${tables.settled} s WHERE ${idIn('s.id', taken)} ORDER BY s.id`,
  )) as { batch: string; ids: string }[];
  let swept = 0;
  for (const { batch, ids: list } of batches) {
    const ids = list.split(',').filter((id) => /^\d{1,18}$/.test(id));
    swept += ids.length;
    if (ids.length === 0) continue;
    if (mode === 'delete') {
      const { sql: statement, parameters } = deleteByKey('message', ids.map((id) => [id]), 't.status = 0');
      await sql.query(bind(statement), parameters);
    } else {
      await sql.query(
        `${updateByKey(tables.message)} SET status = 1, next_retry_at = NULL,
         updated_at = (SELECT s.settled_at FROM ${tables.settled} s WHERE s.id = ${batch})
         WHERE ${idIn('t.id', ids)} AND t.status = 0`,
      );
    }
  }
  const { sql: statement, parameters } = deleteByKey('settled', taken.map((batch) => [batch]));
  await sql.query(bind(statement), parameters);
  return { messages: swept, isMuchLeft: waiting.length === BATCHES };
}

/** The first, and as many more as stay within bounds. */
function takenOf(waiting: readonly { readonly batch: string; readonly size: number | string }[]): readonly string[] {
  let characters = 0;
  return waiting
    .filter(({ size }, index) => {
      characters += Number(size);
      return index === 0 || characters <= CHARACTERS;
    })
    .map(({ batch }) => batch);
}
