import type { StoreFixture } from './fixture';

/** Rows that tests of counts work with; a million where there is time. */
export const MANY = Number(process.env.OUTBOX_TEST_ROWS ?? 100_000);

/** One row for each number from `first` on, in one statement. */
function numbers(f: StoreFixture, first: number, count: number): string {
  switch (f.store.dialect.name) {
    case 'postgres':
      return `(SELECT generate_series(${first}, ${first + count - 1}) AS n) s`;
    case 'sqlite':
      return `(WITH RECURSIVE r(n) AS (SELECT ${first} UNION ALL SELECT n + 1 FROM r WHERE n < ${first + count - 1}) SELECT n FROM r) s`;
    default: {
      const digits = '(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)';
      const places = Array.from({ length: String(count - 1).length }, (_, i) => ({ name: `d${i}`, factor: 10 ** i }));
      const sum = places.map(({ name, factor }) => `${name}.d * ${factor}`).join(' + ');
      const from = places.map(({ name }) => `${digits} ${name}`).join(' CROSS JOIN ');
      return `(SELECT ${first} + ${sum} AS n FROM ${from} WHERE ${sum} < ${count}) s`;
    }
  }
}

function text(f: StoreFixture, expression: string): string {
  return f.store.dialect.name === 'sqlite' || f.store.dialect.name === 'postgres' ? `CAST(${expression} AS TEXT)` : `CAST(${expression} AS CHAR)`;
}

/** Key number `n` belongs to lane `n % lanes`, whatever the hash says: a claim does not look at it. */
async function fillLog(f: StoreFixture, first: number, count: number, status: number, key: string): Promise<void> {
  const { dialect } = f.store;
  const messageId =
    dialect.name === 'sqlite' ? `printf('%036d', s.n)` : `LPAD(${text(f, 's.n')}, 36, '0')`;
  await f.query(
    `INSERT INTO ${f.tables.message} (id, message_id, aggregate_type, aggregate_id, message_key, event_type, topic, payload, status, created_at, updated_at)
     SELECT s.n, ${messageId}, 'order', 'a', ${key}, 't', 'orders', '{"some":"payload"}', ${status}, ${dialect.now}, ${dialect.now}
     FROM ${numbers(f, first, count)}`,
  );
}

export async function fillSent(f: StoreFixture, first: number, count: number): Promise<void> {
  await fillLog(f, first, count, 1, `'sent'`);
  if (f.store.dialect.name !== 'postgres') return;
  // An id that was given does not move the sequence.
  await f.query(`SELECT setval(pg_get_serial_sequence('outbox_message', 'id'), ${first + count - 1})`);
}

export async function fillPending(f: StoreFixture, first: number, count: number): Promise<void> {
  const { lanes } = f.store;
  const key = f.store.dialect.name === 'sqlite' || f.store.dialect.name === 'postgres'
    ? `'k' || ${text(f, `s.n % (${lanes} * 100)`)}`
    : `CONCAT('k', ${text(f, `s.n % (${lanes} * 100)`)})`;
  await fillLog(f, first, count, 0, key);
  await f.query(`INSERT INTO ${f.tables.pending} (lane, id, bytes) SELECT s.n % ${lanes}, s.n, 20 FROM ${numbers(f, first, count)}`);
}

/** Messages of one key in a lane, all held behind the first. */
export async function fillHeld(f: StoreFixture, { first, count, lane, dueInMs }: { first: number; count: number; lane: number; dueInMs: number }): Promise<void> {
  await fillLog(f, first, count, 0, `'held'`);
  await f.query(
    `INSERT INTO ${f.tables.held} (lane, topic, message_key, id, bytes) SELECT ${lane}, 'orders', 'held', s.n, 20 FROM ${numbers(f, first, count)}`,
  );
  await f.query(
    `INSERT INTO ${f.tables.hold} (lane, topic, message_key, retry_at, state) VALUES (${lane}, 'orders', 'held', ${f.store.dialect.nowPlusMs}, 'retry')`,
    [dueInMs],
  );
}

/** How the rows of a history differ, by their place `n` in it. */
export const HISTORY = {
  topic: (n: number): string => (n % 10 === 0 ? 'bills' : 'orders'),
  key: (n: number): string => `k${n % 1000}`,
  type: (n: number): string => `t${n % 7}`,
} as const;

/** Messages that were sent, a second each, the last one just now; so many of the last were given up instead. */
export async function fillHistory(f: StoreFixture, count: number, dead: number): Promise<void> {
  const { dialect, lanes } = f.store;
  const key = joined(f, `'k'`, text(f, 's.n % 1000'));
  const ended = `CASE WHEN s.n > ${count - dead} THEN 2 ELSE 1 END`;
  const { now } = dialect;
  const time = dialect.name === 'postgres' ? `${now} - (${count} - s.n) * INTERVAL '1 second'` : `${now} - INTERVAL (${count} - s.n) SECOND`;
  const topic = `CASE WHEN s.n % 10 = 0 THEN 'bills' ELSE 'orders' END`;
  await f.query(
    `INSERT INTO ${f.tables.message} (id, message_id, aggregate_type, aggregate_id, message_key, event_type, topic, payload, status, retry_count, created_at, updated_at)
     SELECT s.n, ${joined(f, `'00000000-0000-7000-8000-'`, `LPAD(${text(f, 's.n')}, 12, '0')`)}, 'order', 'a', ${key}, ${joined(f, `'t'`, text(f, 's.n % 7'))}, ${topic},
       '{"some":"payload"}', ${ended}, 0, ${time}, ${time} FROM ${numbers(f, 1, count)}`,
  );
  await f.query(`INSERT INTO ${f.tables.dead} (id, lane, topic, message_key) SELECT s.n, s.n % ${lanes}, ${topic}, ${key} FROM ${numbers(f, count - dead + 1, dead)}`);
  if (dialect.name === 'postgres') await f.query(`SELECT setval(pg_get_serial_sequence('outbox_message', 'id'), ${count})`);
}

function joined(f: StoreFixture, one: string, other: string): string {
  return f.store.dialect.name === 'postgres' ? `${one} || ${other}` : `CONCAT(${one}, ${other})`;
}

export async function refreshStatistics(f: StoreFixture): Promise<void> {
  const tables = [f.tables.message, f.tables.pending, f.tables.hold, f.tables.held, f.tables.lane, f.tables.dead];
  for (const table of tables) await f.query(f.store.dialect.name === 'postgres' ? `ANALYZE ${table}` : `ANALYZE TABLE ${table}`);
}
