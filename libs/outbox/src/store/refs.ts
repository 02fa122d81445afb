import type { ClaimLimits, Source } from './claim';
import type { Dialect, Sql } from './dialect';
import { type LaneHead, pendingOf } from './lane-heads';
import { type HoldPlace, TOPIC_HOLD_KEY } from './order-key';

/** A message that waits, by its place in the log. */
export interface Ref {
  readonly id: string;
  readonly lane: number;
  readonly bytes: number;
  readonly source: Source;
  /** What it waits behind; `undefined` for a pending one. */
  readonly place: HoldPlace | undefined;
}

export interface Hold extends HoldPlace {
  readonly due: boolean;
}

export interface Refs {
  readonly refs: readonly Ref[];
  readonly holds: readonly Hold[];
  /** Lanes with more holds than were read. */
  readonly crowded: ReadonlySet<number>;
}

/** Holds that are released by one claim. */
const MAX_DUE_HOLDS = 100;

/** Looks at what stands first in each lane, bounded by rows, without the messages themselves. */
export async function readRefs(sql: Sql, dialect: Dialect, lanes: readonly number[], limits: ClaimLimits): Promise<Refs> {
  const perLane = Math.max(1, Math.floor(limits.rows / lanes.length));
  const holdsPerLane = Math.max(2, Math.floor(perLane / 2));
  const rows = await dialect.readHeads(sql, lanes, { pending: perLane, holds: holdsPerLane });
  const pending: Ref[] = [];
  const holds: Hold[] = [];
  for (const row of rows) {
    if (Number(row.due) < 0) pending.push(toRef(row));
    else holds.push({ lane: Number(row.lane), topic: row.topic, key: row.message_key, due: Number(row.due) === 1 });
  }
  const due = holds.filter((hold) => hold.due).slice(0, Math.min(MAX_DUE_HOLDS, limits.rows));
  // Held keys get what the pending ones leave, and at least the share of a lane.
  const forHeld = Math.max(limits.rows - pending.length, limits.rows / 16);
  const held = due.length === 0 ? [] : await readHeldRefs(sql, dialect, due, Math.max(1, Math.floor(forHeld / due.length)));
  const rest = await readRest(sql, dialect, pending, { perLane, rows: limits.rows - held.length });
  return {
    refs: within([...held, ...pending, ...rest], limits),
    holds,
    crowded: new Set(lanes.filter((lane) => count(holds, lane) === holdsPerLane)),
  };
}

/**
 * Where few lanes have much, takes the rest from them. It may go on where the first look ended: of one key, nothing
 * can have been committed below since.
 */
async function readRest(
  sql: Sql,
  dialect: Dialect,
  pending: readonly Ref[],
  { perLane, rows }: { perLane: number; rows: number },
): Promise<readonly Ref[]> {
  const last = new Map(pending.map(({ lane, id }) => [lane, id]));
  const full = [...last].filter(([lane]) => count(pending, lane) === perLane);
  const left = rows - pending.length;
  if (full.length === 0 || left < rows / 4) return [];
  const more = Math.floor(left / full.length);
  const queries = full.map(([lane, id]) => pendingOf(dialect, lane, more, `AND p.id > ${id}`));
  return ((await sql.query(dialect.unionAll(queries))) as LaneHead[]).map(toRef);
}

async function readHeldRefs(sql: Sql, dialect: Dialect, due: readonly Hold[], limit: number): Promise<readonly Ref[]> {
  const queries = due.map(
    ({ lane }, index) =>
      `SELECT ${index} AS hold, ${dialect.idText('h.id')} AS id, h.bytes AS bytes FROM ${dialect.tables.held} h ` +
      `WHERE h.lane = ${lane} AND h.topic = ? AND h.message_key = ? ` +
      `ORDER BY h.id LIMIT ${limit}`,
  );
  const rows = (await sql.query(
    dialect.bind(dialect.unionAll(queries)),
    due.flatMap(({ topic, key }) => [topic, key]),
  )) as { hold: number; id: string; bytes: number }[];
  return rows.flatMap(({ hold, id, bytes }) => {
    const place = due[Number(hold)];
    if (!place) return [];
    const source = place.key === TOPIC_HOLD_KEY ? 'topic-hold' : 'key-hold';
    return [{ id, lane: place.lane, bytes: Number(bytes), source, place }];
  });
}

function toRef({ lane, id, bytes }: LaneHead): Ref {
  return { id, lane: Number(lane), bytes: Number(bytes), source: 'pending', place: undefined };
}

/** As many as fit, and at least one. What is left out of a lane ends it: the rest must stay behind. */
function within(refs: readonly Ref[], limits: ClaimLimits): readonly Ref[] {
  const taken: Ref[] = [];
  const ended = new Set<number>();
  let bytes = 0;
  for (const ref of refs) {
    if (ended.has(ref.lane)) continue;
    if (taken.length > 0 && (taken.length >= limits.rows || bytes + ref.bytes > limits.bytes)) {
      ended.add(ref.lane);
      continue;
    }
    taken.push(ref);
    bytes += ref.bytes;
  }
  return taken;
}

function count(items: readonly { readonly lane: number }[], lane: number): number {
  return items.filter((item) => item.lane === lane).length;
}
