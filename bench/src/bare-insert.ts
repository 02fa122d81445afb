import { randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import type { DatabaseName } from './arguments.js';
import { keyOf, payloadOf } from './event.js';

const COLUMNS = 'message_id, aggregate_type, aggregate_id, message_key, event_type, topic, payload, created_at, updated_at';

/** Writes an event, in commit order, with the statements that the library sends and nothing else of it: what SQL alone costs. */
export function bareInsert(sql: DataSource, db: DatabaseName): (n: number) => Promise<void> {
  const statements = STATEMENTS[db];
  return async (n) => {
    const key = keyOf(n);
    const values = [randomUUID(), 'bench.event', key, key, 'bench.event', 'bench', payloadOf(n)];
    for (const statement of statements) {
      await sql.query(statement.replace('BUCKET', String(n % 1024)).replace('LANE', String(n % 64)), statement.includes('outbox_message') ? values : []);
    }
  };
}

const MYSQL_VALUES = '?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)';
const MYSQL_PENDING = 'INSERT INTO outbox_pending (lane, id, bytes) VALUES (LANE, LAST_INSERT_ID(), 300)';
const POSTGRES_NOW = `(clock_timestamp() AT TIME ZONE 'utc')`;

const STATEMENTS: Readonly<Record<DatabaseName, readonly string[]>> = {
  mysql: [
    `INSERT INTO outbox_message (${COLUMNS}) SELECT ${MYSQL_VALUES} FROM outbox_bucket WHERE bucket = BUCKET FOR UPDATE`,
    MYSQL_PENDING,
  ],
  mariadb: [
    'BEGIN NOT ATOMIC DECLARE locked INT; SELECT COUNT(*) INTO locked FROM outbox_bucket WHERE bucket = BUCKET FOR UPDATE; ' +
      `INSERT INTO outbox_message (${COLUMNS}) VALUES (${MYSQL_VALUES}); ${MYSQL_PENDING}; END`,
  ],
  postgres: [
    `WITH locks AS MATERIALIZED (SELECT pg_advisory_xact_lock(1, BUCKET)), logged AS (
       INSERT INTO outbox_message (${COLUMNS})
       SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, ${POSTGRES_NOW}, ${POSTGRES_NOW} FROM locks RETURNING id
     ) INSERT INTO outbox_pending (lane, id, bytes) SELECT LANE, id, 300 FROM logged`,
  ],
};
