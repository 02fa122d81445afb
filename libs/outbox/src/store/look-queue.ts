import type { Sql } from './dialect';
import type { HoldState } from './hold';
import { TOPIC_HOLD_KEY } from './order-key';
import type { OutboxStore } from './outbox-store';

/** How much waits in a lane. */
export interface LaneStats {
  readonly lane: number;
  readonly pending: number;
  readonly held: number;
}

/** A key whose messages wait: for another attempt, or for an operator. */
export interface HeldKey {
  readonly topic: string;
  readonly key: string;
  /** `retry`: its first message was refused; `blocked`: by one that was given up; `stopped`: by an operator. */
  readonly state: HoldState;
  readonly waiting: number;
  /** When it is tried again; `null` when it waits for an operator. */
  readonly retryAt: Date | null;
}

export interface QueueReport {
  /** Lanes in which something waits. */
  readonly lanes: readonly LaneStats[];
  readonly laneCount: number;
  /** The first 200, in no order that means anything. */
  readonly keys: readonly HeldKey[];
  readonly moreKeys: boolean;
  /** Id of the newest message of the log; `'0'` when it is empty. */
  readonly head: string;
  /** Messages in the log behind the head that was given, at most 100,000; `null` when none was given. */
  readonly added: number | null;
}

const MAX_KEYS = 200;
const MAX_ADDED = 100_000;

/** Where messages wait, and how far the log is. It reads what waits, and of the log what is behind `since`. */
export async function queueReport(sql: Sql, store: OutboxStore, since: string | undefined): Promise<QueueReport> {
  const { tables, idText } = store.dialect;
  const lanes = await laneStats(sql, store);
  const keys = await heldKeys(sql, store);
  const [newest] = (await sql.query(`SELECT ${idText('MAX(m.id)')} AS head FROM ${tables.message} m`)) as { head: string | null }[];
  return { lanes, laneCount: store.lanes, keys: keys.slice(0, MAX_KEYS), moreKeys: keys.length > MAX_KEYS, head: newest?.head ?? '0', added: await addedSince(sql, store, since) };
}

async function laneStats(sql: Sql, { dialect: { tables } }: OutboxStore): Promise<readonly LaneStats[]> {
  const rows = (await sql.query(
    `SELECT c.lane AS lane, SUM(c.pending) AS pending, SUM(c.held) AS held FROM (
       SELECT p.lane AS lane, COUNT(*) AS pending, 0 AS held FROM ${tables.pending} p GROUP BY p.lane
       UNION ALL SELECT h.lane, 0, COUNT(*) FROM ${tables.held} h GROUP BY h.lane) c GROUP BY c.lane ORDER BY c.lane`,
  )) as Record<keyof LaneStats, number | string>[];
  return rows.map(({ lane, pending, held }) => ({ lane: Number(lane), pending: Number(pending), held: Number(held) }));
}

async function heldKeys(sql: Sql, { dialect }: OutboxStore): Promise<readonly HeldKey[]> {
  const { tables, bind, unionAll, epochMs } = dialect;
  const holds = (await sql.query(
    `SELECT h.lane AS lane, h.topic AS topic, h.message_key AS message_key, h.state AS state, ${epochMs('h.retry_at')} AS retry_ms
     FROM ${tables.hold} h WHERE h.message_key <> '${TOPIC_HOLD_KEY}' ORDER BY h.lane, h.topic, h.message_key LIMIT ${MAX_KEYS + 1}`,
  )) as { lane: number; topic: string; message_key: string; state: HoldState; retry_ms: number | string }[];
  if (holds.length === 0) return [];
  const counts = holds.map(({ lane }, index) => `SELECT ${index} AS place, COUNT(*) AS n FROM ${tables.held} w WHERE w.lane = ${Number(lane)} AND w.topic = ? AND w.message_key = ?`);
  const rows = (await sql.query(bind(unionAll(counts)), holds.flatMap(({ topic, message_key: key }) => [topic, key]))) as { place: number; n: number | string }[];
  const waiting = new Map(rows.map(({ place, n }) => [Number(place), Number(n)]));
  return holds.map(({ topic, message_key: key, state, retry_ms: retry }, index) => ({
    topic,
    key,
    state,
    waiting: waiting.get(index) ?? 0,
    retryAt: state === 'retry' ? new Date(Number(retry)) : null,
  }));
}

async function addedSince(sql: Sql, { dialect: { tables } }: OutboxStore, since: string | undefined): Promise<number | null> {
  if (since === undefined) return null;
  const [row] = (await sql.query(
    `SELECT COUNT(*) AS n FROM (SELECT m.id AS id FROM ${tables.message} m WHERE m.id > ${since} ORDER BY m.id LIMIT ${MAX_ADDED}) a`,
  )) as { n: number | string }[];
  return Number(row?.n ?? 0);
}
