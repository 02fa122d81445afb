import { slotOf } from '../event/hash';
import type { Dialect, Sql } from './dialect';
import { holdKey, placeName, placeOf } from './order-key';

/**
 * `discarded`: an operator has decided that it is not sent. `lost`: the message waits nowhere, and nobody says that it was sent. It never happens unless tables
 * were edited.
 */
export type MessageState = 'pending' | 'held' | 'dead' | 'sent' | 'discarded' | 'lost';

/** What `status` says in the log; 0 is a message that waits, or that the sweeper has not marked yet. */
export const ENDED_AS: Readonly<Record<number, MessageState>> = { 1: 'sent', 2: 'dead', 3: 'discarded' };

interface LogRow {
  id: string;
  message_id: string;
  topic: string;
  message_key: string | null;
  status: number;
}

export interface Suspect {
  readonly id: string;
  readonly lane: number;
  readonly topic: string;
  readonly key: string | null;
  readonly messageId: string;
}

/** Batches beyond which it is not worth while to look through what the sweeper has not done yet. */
const MAX_BATCHES = 1000;

/** The state of messages by the tables together, right at once; those that are not in the log are left out. */
export async function statesOf(
  sql: Sql,
  dialect: Dialect,
  lanes: number,
  messageIds: readonly string[],
): Promise<ReadonlyMap<string, MessageState>> {
  const states = new Map<string, MessageState>();
  if (messageIds.length === 0) return states;
  const rows = await readLog(
    sql,
    dialect,
    dialect.bind(`m.message_id IN (${messageIds.map(() => '?').join(', ')})`),
    messageIds,
  );
  const open = rows.filter(({ status }) => Number(status) === 0).map((row) => toSuspect(row, lanes));
  const found = await openStates(sql, dialect, open);
  for (const { id, message_id, status } of rows) {
    states.set(message_id, ENDED_AS[Number(status)] ?? found.get(id) ?? 'lost');
  }
  return states;
}

/**
 * Looks through a stretch of the log for messages that wait nowhere though nobody has sent them.
 *
 * @param after id behind which to begin, `'0'` for the first
 * @returns their ids, and where to go on; `next` is `null` at the end of the log. One that is being requeued at the
 *   moment may be among them: it is lost when it is found twice.
 */
export async function findLost(
  sql: Sql,
  dialect: Dialect,
  lanes: number,
  after: string,
  limit: number,
): Promise<{ readonly lost: readonly string[]; readonly next: string | null }> {
  const { tables, idText } = dialect;
  const bounds = (await sql.query(
    `SELECT ${idText('MIN(m.id)')} AS first, ${idText(`(MIN(m.id) + ${limit})`)} AS next FROM ${tables.message} m WHERE m.id > ${after}`,
  )) as { first: string | null; next: string | null }[];
  const { first, next } = bounds[0] ?? { first: null, next: null };
  if (first === null || next === null) return { lost: [], next: null };
  const rows = await readLog(sql, dialect, `m.id >= ${first} AND m.id <= ${next} AND m.status = 0`);
  const suspects = rows.map((row) => toSuspect(row, lanes));
  const places = await findPlaces(sql, dialect, suspects);
  const missing = suspects.filter(({ id }) => !places.has(id)).map(({ id }) => id);
  if (missing.length === 0) return { lost: [], next };
  // The places were looked at in the order in which a message passes them; the last is the mark of the sweeper.
  const still = await readLog(sql, dialect, `${dialect.idIn('m.id', missing)} AND m.status = 0`);
  return { lost: still.map(({ id }) => id), next };
}

/**
 * What became of messages that the log had as open. One that was found nowhere is looked at once more, in the log first:
 * between the looks the sweeper may have marked it, or somebody may have had it sent again.
 */
export async function openStates(sql: Sql, dialect: Dialect, open: readonly Suspect[]): Promise<ReadonlyMap<string, MessageState>> {
  const states = new Map(await findPlaces(sql, dialect, open));
  const missing = open.filter(({ id }) => !states.has(id));
  if (missing.length === 0) return states;
  const rows = new Map((await readLog(sql, dialect, dialect.idIn('m.id', missing.map(({ id }) => id)))).map((row) => [row.id, Number(row.status)]));
  const places = await findPlaces(sql, dialect, missing);
  for (const { id } of missing) {
    const status = rows.get(id);
    // What leaves the log while it is open was sent.
    states.set(id, status === undefined ? 'sent' : (ENDED_AS[status] ?? places.get(id) ?? 'lost'));
  }
  return states;
}

/** Where messages wait, or that a relay has written them down as sent. */
async function findPlaces(
  sql: Sql,
  dialect: Dialect,
  suspects: readonly Suspect[],
): Promise<ReadonlyMap<string, MessageState>> {
  const places = new Map<string, MessageState>();
  if (suspects.length === 0) return places;
  for (const id of await readPending(sql, dialect, suspects)) places.set(id, 'pending');
  const rest = suspects.filter(({ id }) => !places.has(id));
  for (const id of await readHeld(sql, dialect, rest)) places.set(id, 'held');
  if (places.size === suspects.length) return places;
  const batches = (await sql.query(
    `SELECT s.ids AS ids FROM ${dialect.tables.settled} s ORDER BY s.id DESC LIMIT ${MAX_BATCHES}`,
  )) as { ids: string }[];
  const sent = new Set(batches.flatMap(({ ids }) => ids.split(',')));
  for (const { id } of suspects) {
    // With more batches than were read, nothing can be said against it.
    if (!places.has(id) && (sent.has(id) || batches.length === MAX_BATCHES)) places.set(id, 'sent');
  }
  return places;
}

async function readLog(sql: Sql, dialect: Dialect, condition: string, parameters: readonly string[] = []): Promise<LogRow[]> {
  return (await sql.query(
    `SELECT ${dialect.idText('m.id')} AS id, m.message_id, m.topic, m.message_key, m.status
     FROM ${dialect.tables.message} m WHERE ${condition} ORDER BY m.id`,
    [...parameters],
  )) as LogRow[];
}

async function readPending(sql: Sql, dialect: Dialect, suspects: readonly Suspect[]): Promise<readonly string[]> {
  const conditions = suspects.map(({ id, lane }) => `(p.lane = ${lane} AND p.id = ${id})`);
  const rows = (await sql.query(
    `SELECT ${dialect.idText('p.id')} AS id FROM ${dialect.tables.pending} p WHERE ${conditions.join(' OR ')}`,
  )) as { id: string }[];
  return rows.map(({ id }) => id);
}

async function readHeld(sql: Sql, dialect: Dialect, suspects: readonly Suspect[]): Promise<readonly string[]> {
  if (suspects.length === 0) return [];
  const wanted = new Map<string, { lane: number; topic: string; key: string; ids: string[] }>();
  for (const suspect of suspects) {
    for (const behind of ['key-hold', 'topic-hold'] as const) {
      const place = placeOf(suspect, behind);
      const known = wanted.get(placeName(place));
      if (known) known.ids.push(suspect.id);
      else wanted.set(placeName(place), { ...place, ids: [suspect.id] });
    }
  }
  const conditions = [...wanted.values()].map(
    ({ lane, ids }) => `(h.lane = ${lane} AND h.topic = ? AND h.message_key = ? AND ${dialect.idIn('h.id', ids)})`,
  );
  const rows = (await sql.query(
    dialect.bind(`SELECT ${dialect.idText('h.id')} AS id FROM ${dialect.tables.held} h WHERE ${conditions.join(' OR ')}`),
    [...wanted.values()].flatMap(({ topic, key }) => [topic, key]),
  )) as { id: string }[];
  return rows.map(({ id }) => id);
}

function toSuspect({ id, topic, message_key, message_id }: LogRow, lanes: number): Suspect {
  const keyed = { topic, key: message_key, messageId: message_id };
  return { id, ...keyed, lane: slotOf(topic, holdKey(keyed), lanes) };
}
