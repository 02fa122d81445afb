import type { ClaimedMessage, ClaimLimits } from './claim';
import type { Dialect, Sql } from './dialect';
import { orderKey } from './order-key';

interface Ref {
  readonly id: string;
  readonly lane: number;
  readonly bytes: number;
  readonly held: boolean;
}

interface Heads {
  readonly messages: readonly ClaimedMessage[];
  /** Pending messages of keys that are held: they must wait with the others of their key. */
  readonly followers: readonly ClaimedMessage[];
}

interface Hold {
  readonly topic: string;
  readonly key: string;
  readonly lane: number;
  readonly due: boolean;
}

/** Reads what stands first in the given lanes, which the caller has locked. */
export async function readHeads(
  sql: Sql,
  dialect: Dialect,
  lanes: readonly number[],
  limits: ClaimLimits,
): Promise<Heads> {
  const perLane = Math.max(1, Math.floor(limits.rows / lanes.length));
  const holds = await readHolds(sql, dialect, lanes);
  const refs = [
    ...(await readHeldRefs(sql, dialect, holds.filter((hold) => hold.due), perLane)),
    ...(await readPendingRefs(sql, dialect, lanes, perLane)),
  ];
  const messages = await readMessages(sql, dialect, withinBytes(refs, limits.bytes));
  const heldKeys = new Set(holds.map(orderKey));
  const isFollower = (message: ClaimedMessage): boolean =>
    !message.held && heldKeys.has(orderKey(message));
  return {
    messages: messages.filter((message) => !isFollower(message)),
    followers: messages.filter(isFollower),
  };
}

async function readHolds(sql: Sql, dialect: Dialect, lanes: readonly number[]): Promise<readonly Hold[]> {
  const rows = (await sql.query(
    `SELECT h.topic AS topic, h.message_key AS message_key, h.lane AS lane,
      CASE WHEN h.retry_at <= ${dialect.now} THEN 1 ELSE 0 END AS due
     FROM ${dialect.tables.hold} h WHERE h.lane IN (${lanes.join(', ')}) ORDER BY h.retry_at`,
  )) as { topic: string; message_key: string; lane: number; due: number }[];
  return rows.map(({ topic, message_key, lane, due }) => ({
    topic,
    key: message_key,
    lane: Number(lane),
    due: Number(due) === 1,
  }));
}

async function readHeldRefs(
  sql: Sql,
  dialect: Dialect,
  due: readonly Hold[],
  perLane: number,
): Promise<readonly Ref[]> {
  const refs: Ref[] = [];
  for (const { topic, key, lane } of due.slice(0, perLane)) {
    const rows = (await sql.query(
      dialect.bind(
        `SELECT ${dialect.idText('h.id')} AS id, h.bytes AS bytes FROM ${dialect.tables.held} h
         WHERE h.topic = ? AND h.message_key = ? ORDER BY h.topic, h.message_key, h.id LIMIT ${perLane}`,
      ),
      [topic, key],
    )) as { id: string; bytes: number }[];
    refs.push(...rows.map(({ id, bytes }) => ({ id, lane, bytes: Number(bytes), held: true })));
  }
  return refs;
}

async function readPendingRefs(
  sql: Sql,
  dialect: Dialect,
  lanes: readonly number[],
  perLane: number,
): Promise<readonly Ref[]> {
  const rows = (await sql.query(
    dialect.unionAll(
      // BETWEEN and ORDER BY both columns: with stale statistics PostgreSQL walks another index for "lane = …".
      lanes.map(
        (lane) =>
          `SELECT p.lane AS lane, ${dialect.idText('p.id')} AS id, p.bytes AS bytes FROM ${dialect.tables.pending} p ` +
          `WHERE p.lane BETWEEN ${lane} AND ${lane} ORDER BY p.lane, p.id LIMIT ${perLane}`,
      ),
    ),
  )) as { lane: number; id: string; bytes: number }[];
  return rows.map(({ lane, id, bytes }) => ({ id, lane: Number(lane), bytes: Number(bytes), held: false }));
}

/** As many as fit, and at least one. What is left out of a lane ends it: the rest must stay behind. */
function withinBytes(refs: readonly Ref[], limit: number): readonly Ref[] {
  const taken: Ref[] = [];
  const ended = new Set<number>();
  let total = 0;
  for (const ref of refs) {
    if (ended.has(ref.lane)) continue;
    if (taken.length > 0 && total + ref.bytes > limit) {
      ended.add(ref.lane);
      continue;
    }
    taken.push(ref);
    total += ref.bytes;
  }
  return taken;
}

async function readMessages(sql: Sql, dialect: Dialect, refs: readonly Ref[]): Promise<readonly ClaimedMessage[]> {
  if (refs.length === 0) return [];
  const { tables, idText, epochMs } = dialect;
  const rows = (await sql.query(
    `SELECT ${idText('m.id')} AS id, m.message_id, m.aggregate_type, m.aggregate_id, m.message_key, m.tenant_id,
      m.traceparent, m.correlation_id, m.causation_id, m.event_type, m.topic, m.headers, m.payload,
      m.retry_count, ${epochMs('m.created_at')} AS created_ms
     FROM ${tables.message} m WHERE m.id IN (${refs.map((ref) => ref.id).join(', ')})`,
  )) as Row[];
  const byId = new Map(rows.map((row) => [row.id, row]));
  return refs.flatMap((ref) => {
    const row = byId.get(ref.id);
    return row ? [toClaimed(row, ref)] : [];
  });
}

interface Row {
  id: string;
  message_id: string;
  aggregate_type: string;
  aggregate_id: string;
  message_key: string | null;
  tenant_id: string | null;
  traceparent: string | null;
  correlation_id: string | null;
  causation_id: string | null;
  event_type: string;
  topic: string;
  headers: string | null;
  payload: string | null;
  retry_count: number;
  created_ms: number | string;
}

function toClaimed(row: Row, ref: Ref): ClaimedMessage {
  return {
    id: row.id,
    lane: ref.lane,
    messageId: row.message_id,
    aggregateType: row.aggregate_type,
    aggregateId: row.aggregate_id,
    key: row.message_key,
    tenantId: row.tenant_id,
    traceparent: row.traceparent,
    correlationId: row.correlation_id,
    causationId: row.causation_id,
    type: row.event_type,
    topic: row.topic,
    headers: row.headers === null ? {} : (JSON.parse(row.headers) as Record<string, string>),
    payload: row.payload,
    createdAt: Number(row.created_ms),
    attempts: Number(row.retry_count),
    held: ref.held,
  };
}
