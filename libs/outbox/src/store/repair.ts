import { LanesBusyError } from '../errors';
import { slotOf } from '../event/hash';
import type { ChangingSql, Connection } from './connection';
import type { Dialect, Sql } from './dialect';
import { endHolds, type HeldRow, moveToHeld, readHolds, releaseHolds, removeHeld } from './hold';
import { ENDED_AS, openStates, type MessageState } from './message-state';
import { type HoldPlace, holdKey, placeName, placeOf } from './order-key';
import type { OutboxStore } from './outbox-store';
import { withLanes } from './with-lanes';

/** What an operator's act on some messages has come to. Ids are those of the log. */
export interface Repaired {
  readonly done: readonly string[];
  /** Those that the act does not apply to, and what they are. */
  readonly skipped: readonly { readonly id: string; readonly state: MessageState }[];
  readonly notFound: readonly string[];
}

/** Called in the transaction of the act, when something was done. */
type Written = (result: Repaired) => Promise<void>;

/** A message of the log, without what it says. */
interface Row {
  readonly id: string;
  readonly lane: number;
  readonly topic: string;
  readonly key: string | null;
  readonly messageId: string;
  readonly bytes: number;
  readonly state: MessageState;
  /** Whether it was sent and the log does not say so yet: the sweeper is about to touch it. */
  readonly unswept: boolean;
}

/** Error texts have as much room as the relay's. */
const MAX_NOTE_LENGTH = 2000;
const MAX_ATTEMPTS = 10;

/** Somebody has taken messages away between a look and the act. */
class MessagesGone extends LanesBusyError {}

/**
 * Has messages that have ended in one of the given states sent (again): each is back in its place by id, behind the
 * hold of its key if there is one; a block that a given-up message has left behind it is over.
 */
export async function requeue(connection: Connection, store: OutboxStore, ids: readonly string[], from: ReadonlySet<MessageState>, written: Written): Promise<Repaired> {
  return repair(connection, store, ids, from, written, async (rows) => {
    const { dialect } = store;
    await update(connection, dialect, rows, { change: 'status = 0, retry_count = 0, next_retry_at = NULL', parameters: [] });
    const holds = await readHolds(connection, dialect, rows.map(keyPlace));
    const isHeld = (row: Row): boolean => holds.has(placeName(keyPlace(row)));
    await moveToHeld(connection, dialect, rows.filter(isHeld).map((row) => heldRow(row, keyPlace(row))));
    const free = rows.filter((row) => !isHeld(row));
    if (free.length > 0) {
      await connection.query(
        `INSERT INTO ${dialect.tables.pending} (lane, id, bytes) VALUES ${free.map(({ lane, id, bytes }) => `(${lane}, ${id}, ${bytes})`).join(', ')}`,
      );
    }
    await endHolds(connection, dialect, blockedAmong(rows, holds));
  });
}

/** Decides that messages are not sent, with a note for those who ask later. Followers of a given-up one go on. */
export async function discard(connection: Connection, store: OutboxStore, ids: readonly string[], from: ReadonlySet<MessageState>, note: string, written: Written): Promise<Repaired> {
  return repair(connection, store, ids, from, written, async (rows) => {
    const { dialect } = store;
    const pending = rows.filter(({ state }) => state === 'pending');
    if (pending.length > 0) {
      const { sql, parameters } = dialect.deleteByKey('pending', pending.map(({ lane, id }) => [lane, id]));
      assertAll(await connection.change(dialect.bind(sql), parameters), pending);
    }
    const held = rows.filter(({ state }) => state === 'held');
    const places = held.flatMap((row) => [placeOf(row, 'key-hold'), placeOf(row, 'topic-hold')]);
    const heldRows = held.flatMap((row) => [heldRow(row, placeOf(row, 'key-hold')), heldRow(row, placeOf(row, 'topic-hold'))]);
    assertAll(await removeHeld(connection, dialect, heldRows), held);
    await update(connection, dialect, rows, { change: 'status = 3, next_retry_at = NULL, last_error = ?', parameters: [note.slice(0, MAX_NOTE_LENGTH)] });
    const ofGivenUp = rows.filter(({ state }) => state === 'dead');
    const holds = await readHolds(connection, dialect, [...places, ...ofGivenUp.map(keyPlace)]);
    // What an operator has stopped or paused does not become due.
    const moving = places.filter((place) => ['retry', 'topic'].includes(holds.get(placeName(place)) ?? ''));
    await releaseHolds(connection, dialect, [...new Map(moving.map((place) => [placeName(place), place])).values()]);
    await endHolds(connection, dialect, blockedAmong(ofGivenUp, holds));
  });
}

/** The cleaner may take a message away between a look and the act: then all of it is undone and done again without it. */
async function repair(...given: Parameters<typeof repairOnce>): Promise<Repaired> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await repairOnce(...given);
    } catch (error) {
      if (!(error instanceof MessagesGone) || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

async function repairOnce(
  connection: Connection,
  store: OutboxStore,
  ids: readonly string[],
  from: ReadonlySet<MessageState>,
  written: Written,
  change: (rows: readonly Row[]) => Promise<void>,
): Promise<Repaired> {
  const lanes = (await readRows(connection, store, ids)).map(({ lane }) => lane);
  if (lanes.length === 0) return { done: [], skipped: [], notFound: ids };
  return withLanes(connection, store, lanes, async () => {
    if (from.has('dead')) {
      // First of all, as the cleaner does: of two who want a message, one finds it gone.
      const { sql, parameters } = store.dialect.deleteByKey('dead', ids.map((id) => [id]));
      await connection.change(store.dialect.bind(sql), parameters);
    }
    const rows = await readRows(connection, store, ids);
    const taken = rows.filter(({ state, unswept }) => from.has(state) && !unswept);
    if (taken.length > 0) await change(taken);
    const found = new Set(rows.map(({ id }) => id));
    const result = {
      done: taken.map(({ id }) => id),
      skipped: rows.filter((row) => !taken.includes(row)).map(({ id, state }) => ({ id, state })),
      notFound: ids.filter((id) => !found.has(id)),
    };
    if (taken.length > 0) await written(result);
    return result;
  });
}

async function readRows(sql: Sql, { dialect, lanes }: OutboxStore, ids: readonly string[]): Promise<readonly Row[]> {
  if (ids.length === 0) return [];
  const size = (column: string): string => `COALESCE(OCTET_LENGTH(m.${column}), 0)`;
  const found = (await sql.query(
    `SELECT ${dialect.idText('m.id')} AS id, m.message_id AS message_id, m.topic AS topic, m.message_key AS message_key, m.status AS status,
      ${size('payload')} + ${size('headers')} + ${size('message_key')} AS bytes
     FROM ${dialect.tables.message} m WHERE ${dialect.idIn('m.id', ids)} ORDER BY m.id`,
  )) as { id: string; message_id: string; topic: string; message_key: string | null; status: number; bytes: number | string }[];
  const rows = found.map(({ id, message_id, topic, message_key, status, bytes }) => {
    const keyed = { topic, key: message_key, messageId: message_id };
    return { id, ...keyed, lane: slotOf(topic, holdKey(keyed), lanes), bytes: Number(bytes), state: ENDED_AS[Number(status)] };
  });
  const open = await openStates(sql, dialect, rows.filter(({ state }) => state === undefined));
  return rows.map((row) => ({ ...row, state: row.state ?? open.get(row.id) ?? 'lost', unswept: open.get(row.id) === 'sent' }));
}

async function update(
  sql: ChangingSql,
  dialect: Dialect,
  rows: readonly Row[],
  { change, parameters }: { change: string; parameters: readonly string[] },
): Promise<void> {
  const { tables, bind, now, idIn, updateByKey } = dialect;
  const changed = await sql.change(
    bind(`${updateByKey(tables.message)} SET ${change}, updated_at = ${now} WHERE ${idIn('t.id', rows.map(({ id }) => id))}`),
    [...parameters],
  );
  assertAll(changed, rows);
}

/** @throws MessagesGone when somebody has taken some of them away in between; nothing is done then */
function assertAll(changed: number, rows: readonly Row[]): void {
  if (changed === rows.length) return;
  throw new MessagesGone(`${rows.length - changed} of ${rows.length} messages have gone in the meantime. Nothing of it was done: try again.`);
}

function keyPlace(row: Row): HoldPlace {
  return placeOf(row, 'key-hold');
}

function heldRow({ id, bytes }: Row, place: HoldPlace): HeldRow {
  return { id, bytes, place };
}

function blockedAmong(rows: readonly Row[], holds: ReadonlyMap<string, string>): readonly HoldPlace[] {
  const places = new Map(rows.map((row) => [placeName(keyPlace(row)), keyPlace(row)]));
  return [...places].filter(([name]) => holds.get(name) === 'blocked').map(([, place]) => place);
}
