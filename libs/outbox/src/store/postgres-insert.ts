import { MESSAGE_COLUMNS, messageValues, type NewMessage, type Sql } from './dialect';
import type { TableNames } from './tables';

export const NOW = `(clock_timestamp() AT TIME ZONE 'utc')`;

const COLUMNS = MESSAGE_COLUMNS.join(', ');
/** The first parameter behind those of the columns. */
const NEXT = MESSAGE_COLUMNS.length + 1;

/**
 * Appends to the log and to the pending table in one statement, with the locks that come first: rows, and so their ids,
 * are made only when the locks have been given.
 *
 * @param locks calls of functions
 */
export async function insertIntoPostgres(sql: Sql, tables: TableNames, messages: readonly NewMessage[], locks: readonly string[]): Promise<void> {
  const [message] = messages;
  const first = locks.length > 0 ? `locks AS MATERIALIZED (SELECT ${locks.join(', ')}), ` : '';
  if (message && messages.length === 1) await insertOne(sql, tables, message, first);
  else await insertMany(sql, tables, messages, first);
}

/** What most transactions write: for the planner it is half the work. */
async function insertOne(sql: Sql, tables: TableNames, { message, lane, bytes }: NewMessage, locks: string): Promise<void> {
  const values = MESSAGE_COLUMNS.map((_, column) => `$${column + 1}::text`).join(', ');
  await sql.query(
    `WITH ${locks}logged AS (
       INSERT INTO ${tables.message} (${COLUMNS}, created_at, updated_at) SELECT ${values}, ${NOW}, ${NOW} ${locks && 'FROM locks'} RETURNING id
     )
     INSERT INTO ${tables.pending} (lane, id, bytes) SELECT $${NEXT}::int, id, $${NEXT + 1}::int FROM logged`,
    [...messageValues(message), lane, bytes],
  );
}

async function insertMany(sql: Sql, tables: TableNames, messages: readonly NewMessage[], locks: string): Promise<void> {
  const rows = messages.map(({ message }) => messageValues(message));
  const columns = MESSAGE_COLUMNS.map((_, column) => rows.map((row) => row[column]));
  const arrays = MESSAGE_COLUMNS.map((_, column) => `$${column + 1}::text[]`).join(', ');
  await sql.query(
    `WITH ${locks}input AS (
       SELECT t.* FROM ${locks && 'locks, '}unnest(${arrays}, $${NEXT}::int[], $${NEXT + 1}::int[]) WITH ORDINALITY
         AS t(${COLUMNS}, lane, bytes, ord)
     ), logged AS (
       INSERT INTO ${tables.message} (${COLUMNS}, created_at, updated_at)
       SELECT ${COLUMNS}, ${NOW}, ${NOW} FROM input ORDER BY ord
       RETURNING id, message_id
     )
     INSERT INTO ${tables.pending} (lane, id, bytes)
     SELECT input.lane, logged.id, input.bytes FROM logged JOIN input USING (message_id)`,
    [...columns, messages.map(({ lane }) => lane), messages.map(({ bytes }) => bytes)],
  );
}
