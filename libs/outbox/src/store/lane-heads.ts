import type { Dialect, Sql } from './dialect';

/** A row of what stands first in a lane. */
export interface LaneHead {
  readonly lane: number;
  readonly id: string;
  readonly bytes: number;
  readonly topic: string;
  readonly message_key: string;
  /** -1: the row is a pending message; 0, 1: a hold, and whether it is due. */
  readonly due: number;
}

/** Most rows of each lane. */
export interface HeadLimits {
  readonly pending: number;
  readonly holds: number;
}

type Parts = Pick<Dialect, 'tables' | 'idText' | 'laneIs' | 'unionAll' | 'now'>;

/** Reads the heads of lanes with a branch for each: messages by their ids, holds by their times. */
export async function headsByUnion(sql: Sql, dialect: Parts, lanes: readonly number[], { pending, holds }: HeadLimits): Promise<readonly LaneHead[]> {
  const query = dialect.unionAll([
    ...lanes.map((lane) => pendingOf(dialect, lane, pending)),
    ...lanes.map((lane) => holdsOf(dialect, lane, holds)),
  ]);
  return (await sql.query(query)) as LaneHead[];
}

/** A query for pending messages of a lane. */
export function pendingOf({ tables, idText, laneIs }: Parts, lane: number, limit: number, condition = ''): string {
  return (
    `SELECT p.lane AS lane, ${idText('p.id')} AS id, p.bytes AS bytes, '' AS topic, '' AS message_key, -1 AS due ` +
    `FROM ${tables.pending} p WHERE ${laneIs('p.lane', lane)} ${condition} ORDER BY p.lane, p.id LIMIT ${limit}`
  );
}

function holdsOf({ tables, laneIs, now }: Parts, lane: number, limit: number): string {
  return (
    `SELECT h.lane AS lane, '' AS id, 0 AS bytes, h.topic AS topic, h.message_key AS message_key, ` +
    `CASE WHEN h.retry_at <= ${now} THEN 1 ELSE 0 END AS due ` +
    `FROM ${tables.hold} h WHERE ${laneIs('h.lane', lane)} ORDER BY h.lane, h.retry_at LIMIT ${limit}`
  );
}
