import type { Dialect, Sql } from './dialect';

/** Ids from `from` on and below `below`; without bounds where `null`. */
export interface IdRange {
  readonly from: bigint | null;
  readonly below: bigint | null;
}

/** What a stretch of a partition holds. */
export interface Stretch {
  readonly rows: number;
  /** Whether a message is in it that is neither sent nor discarded, as far as the log says. */
  readonly unsent: boolean;
  /** Whether one has been sent or discarded lately. */
  readonly young: boolean;
  /** Where the next stretch begins; `null` at the end. */
  readonly next: string | null;
}

/** Whether the newest message of a part of the log was written so long ago; `undefined` when it is empty. */
export async function isOld(sql: Sql, { tables, bind, nowPlusMs }: Dialect, range: IdRange, age: number): Promise<boolean | undefined> {
  const rows = (await sql.query(
    bind(`SELECT CASE WHEN m.created_at < ${nowPlusMs} THEN 1 ELSE 0 END AS old FROM ${tables.message} m WHERE ${within('m.id', range)} ORDER BY m.id DESC LIMIT 1`),
    [-age],
  )) as { old: number }[];
  return rows[0] && Number(rows[0].old) === 1;
}

/** Looks at messages of a part of the log behind `after`, at most so many, without a lock. */
export async function lookThrough(sql: Sql, { tables, bind, idText, nowPlusMs }: Dialect, range: IdRange, after: string, limits: { age: number; rows: number }): Promise<Stretch> {
  const [found] = (await sql.query(
    bind(
      `SELECT COUNT(*) AS n, ${idText('MAX(s.id)')} AS last, SUM(s.unsent) AS unsent, SUM(s.young) AS young FROM (
         SELECT m.id AS id, CASE WHEN m.status IN (1, 3) THEN 0 ELSE 1 END AS unsent,
           CASE WHEN m.updated_at < ${nowPlusMs} THEN 0 ELSE 1 END AS young
         FROM ${tables.message} m WHERE ${within('m.id', range)} AND m.id > ${after} ORDER BY m.id LIMIT ${limits.rows}) s`,
    ),
    [-limits.age],
  )) as { n: number | string; last: string | null; unsent: number | string | null; young: number | string | null }[];
  const rows = Number(found?.n);
  return { rows, unsent: Number(found?.unsent) > 0, young: Number(found?.young) > 0, next: rows === limits.rows ? (found?.last ?? null) : null };
}

/** Whether a message of a part of the log waits, or was given up. Quick, however much else waits. */
export async function isAwaited(sql: Sql, { tables }: Dialect, range: IdRange): Promise<boolean> {
  const first = (table: string, alias: string, condition: string, order: string): string =>
    `(SELECT ${alias}.id FROM ${table} ${alias} WHERE ${condition}${within(`${alias}.id`, range)} ORDER BY ${order} LIMIT 1)`;
  const pending = first(tables.pending, 'p', 'p.lane = l.lane AND ', 'p.lane, p.id');
  const held = first(tables.held, 'w', 'w.lane = h.lane AND w.topic = h.topic AND w.message_key = h.message_key AND ', 'w.lane, w.topic, w.message_key, w.id');
  const rows = (await sql.query(
    `SELECT MIN(u.id) IS NOT NULL AS awaited FROM (SELECT ${pending} AS id FROM ${tables.lane} l
       UNION ALL SELECT ${held} FROM ${tables.hold} h UNION ALL SELECT ${first(tables.dead, 'd', '', 'd.id')}) u`,
  )) as { awaited: unknown }[];
  return rows[0]?.awaited === true || Number(rows[0]?.awaited) === 1;
}

function within(id: string, { from, below }: IdRange): string {
  return [...(from === null ? [] : [`${id} >= ${from}`]), ...(below === null ? [] : [`${id} < ${below}`])].join(' AND ') || '1 = 1';
}
