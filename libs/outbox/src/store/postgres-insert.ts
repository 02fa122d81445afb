import { MESSAGE_COLUMNS, messageValues, type NewMessage, type Sql } from './dialect';
import type { PreparedStatements } from './postgres-prepared';
import type { TableNames } from './tables';

export const NOW = `(clock_timestamp() AT TIME ZONE 'utc')`;

const COLUMNS = MESSAGE_COLUMNS.join(', ');
/** The first parameter behind those of the columns. */
const NEXT = MESSAGE_COLUMNS.length + 1;

/**
 * Appends to the log and to the pending table in one statement, with the locks that come first: rows, and so their ids,
 * are made only when the locks have been given.
 */
export class PostgresInsert {
  private readonly one: Readonly<Record<'locked' | 'free', string>>;
  private readonly many: string;

  /** @param space of the locks' numbers */
  constructor(
    tables: TableNames,
    space: number,
    private readonly statements: PreparedStatements,
  ) {
    const one = (locks: string, from: string): string => {
      const values = MESSAGE_COLUMNS.map((_, column) => `$${column + 1}::text`).join(', ');
      return `WITH ${locks}logged AS (
         INSERT INTO ${tables.message} (${COLUMNS}, created_at, updated_at) SELECT ${values}, ${NOW}, ${NOW} ${from} RETURNING id
       )
       INSERT INTO ${tables.pending} (lane, id, bytes) SELECT $${NEXT}::int, id, $${NEXT + 1}::int FROM logged`;
    };
    this.one = {
      free: one('', ''),
      locked: one(`locks AS MATERIALIZED (SELECT pg_advisory_xact_lock(${space}, $${NEXT + 2}::int)), `, 'FROM locks'),
    };
    const arrays = MESSAGE_COLUMNS.map((_, column) => `$${column + 1}::text[]`).join(', ');
    this.many = `WITH locks AS MATERIALIZED (
         SELECT pg_advisory_xact_lock(${space}, bucket) FROM unnest($${NEXT + 2}::int[]) AS b(bucket)
       ), input AS (
         SELECT t.* FROM (SELECT COUNT(*) FROM locks) given, unnest(${arrays}, $${NEXT}::int[], $${NEXT + 1}::int[]) WITH ORDINALITY
           AS t(${COLUMNS}, lane, bytes, ord)
       ), logged AS (
         INSERT INTO ${tables.message} (${COLUMNS}, created_at, updated_at)
         SELECT ${COLUMNS}, ${NOW}, ${NOW} FROM input ORDER BY ord
         RETURNING id, message_id
       )
       INSERT INTO ${tables.pending} (lane, id, bytes)
       SELECT input.lane, logged.id, input.bytes FROM logged JOIN input USING (message_id)`;
  }

  /** @param buckets numbers of the locks, in ascending order */
  async insert(sql: Sql, messages: readonly NewMessage[], buckets: readonly number[]): Promise<void> {
    const [message] = messages;
    if (message && messages.length === 1) await this.insertOne(sql, message, buckets);
    else await this.insertMany(sql, messages, buckets);
  }

  /** What most transactions write: for the planner it is half the work. */
  private async insertOne(sql: Sql, { message, lane, bytes }: NewMessage, buckets: readonly number[]): Promise<void> {
    await this.statements.query(sql, buckets.length > 0 ? this.one.locked : this.one.free, [...messageValues(message), lane, bytes, ...buckets]);
  }

  private async insertMany(sql: Sql, messages: readonly NewMessage[], buckets: readonly number[]): Promise<void> {
    const rows = messages.map(({ message }) => messageValues(message));
    const columns = MESSAGE_COLUMNS.map((_, column) => rows.map((row) => row[column]));
    // Not prepared: a plan for any number of rows is a bad one for many.
    await sql.query(this.many, [...columns, messages.map(({ lane }) => lane), messages.map(({ bytes }) => bytes), buckets]);
  }
}
