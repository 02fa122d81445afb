import { type ClaimedMessage, ClaimLostError, type ParkedMessage, type RefusedMessage, type Settlement } from './claim';
import type { ChangingSql } from './connection';
import type { Dialect } from './dialect';
import { type HeldRow, holdAll, moveToHeld, type NewHold, releaseHolds, removeHeld } from './hold';
import { type HoldPlace, holdKey, placeName, placeOf } from './order-key';
import { partsOf } from './parts-of';
import type { Waiters } from './read-heads';
import type { Ref } from './refs';

/** Longest error text that is kept, in characters. */
const MAX_ERROR_LENGTH = 2000;
/** Rows of one statement that names each with its values. */
const ROWS_PER_STATEMENT = 200;

/**
 * Records what became of a claim's messages, and puts in their places those that it met and could not send, in the
 * transaction that holds their lanes.
 *
 * @throws ClaimLostError when the messages are not where the claim found them
 */
export async function settle(
  sql: ChangingSql,
  dialect: Dialect,
  settlement: Settlement,
  waiters: Waiters = { followers: [], orphans: [] },
): Promise<void> {
  const { sent, retried, parked, waiting } = settlement;
  const gone = [...sent, ...parked.map(({ message }) => message)];
  const moved = [
    ...retried.map(({ message }) => ({ message, behind: 'key-hold' as const })),
    ...waiting.map(({ message }) => ({ message, behind: waitingPlace(message) })),
    ...waiters.followers,
  ].filter(({ message, behind }) => message.source !== behind);

  await removeAll(sql, dialect, [...gone, ...moved.map(({ message }) => message)].map(toRef), waiters.orphans);
  await moveToHeld(sql, dialect, moved.map(({ message, behind }) => toHeldRow(message, placeOf(message, behind))));
  await markRetried(sql, dialect, settlement.retried);
  await park(sql, dialect, parked);
  const held: NewHold[] = [
    ...retried.map(({ message, delayMs }) => ({ place: placeOf(message, 'key-hold'), state: 'retry' as const, delayMs })),
    ...waiting.map(({ message, delayMs }) => ({ place: placeOf(message, waitingPlace(message)), state: 'topic' as const, delayMs })),
    ...parked
      .filter(({ blocks, message }) => blocks && message.key !== null)
      .map(({ message }) => ({ place: placeOf(message, 'key-hold'), state: 'blocked' as const, delayMs: null })),
  ];
  await holdAll(sql, dialect, held);
  await releaseHolds(sql, dialect, releasable(settlement, waiters, new Set(held.map(({ place }) => placeName(place)))));
  await logSent(sql, dialect, sent);
}

/** One that waits behind its key already stays there when its topic is missing. */
function waitingPlace(message: ClaimedMessage): 'key-hold' | 'topic-hold' {
  return message.source === 'key-hold' ? 'key-hold' : 'topic-hold';
}

/** The holds of which something was taken, and which nothing has renewed: the next of them is due at once. */
function releasable(settlement: Settlement, waiters: Waiters, renewed: ReadonlySet<string>): readonly HoldPlace[] {
  const messages = [
    ...settlement.sent,
    ...settlement.parked.map(({ message }) => message),
    ...settlement.retried.map(({ message }) => message),
    ...waiters.followers.map(({ message }) => message),
  ];
  const places = new Map<string, HoldPlace>();
  for (const message of messages) {
    if (message.source === 'pending') continue;
    const place = placeOf(message, message.source);
    places.set(placeName(place), place);
  }
  for (const { place } of waiters.orphans) if (place) places.set(placeName(place), place);
  return [...places].filter(([name]) => !renewed.has(name)).map(([, place]) => place);
}

async function removeAll(
  sql: ChangingSql,
  dialect: Dialect,
  refs: readonly Ref[],
  orphans: readonly Ref[],
): Promise<void> {
  const all = [...refs, ...orphans];
  const pending = all.filter(({ source }) => source === 'pending');
  const held = all.flatMap(({ id, place, bytes }) => (place ? [{ id, place, bytes }] : []));
  const removed = (await removePending(sql, dialect, pending)) + (await removeHeld(sql, dialect, held));
  if (removed !== all.length) {
    throw new ClaimLostError(
      `${all.length - removed} of ${all.length} messages were no longer where this relay had found them: others have had its lanes.`,
    );
  }
}

async function removePending(sql: ChangingSql, dialect: Dialect, refs: readonly Ref[]): Promise<number> {
  if (refs.length === 0) return 0;
  const { sql: statement, parameters } = dialect.deleteByKey('pending', refs.map(({ lane, id }) => [lane, id]));
  return sql.change(dialect.bind(statement), parameters);
}

/** The attempt is counted where everybody can see it. */
async function markRetried(sql: ChangingSql, dialect: Dialect, retried: Settlement['retried']): Promise<void> {
  const { nowPlusMs } = dialect;
  for (const part of partsOf(retried, ROWS_PER_STATEMENT)) {
    await updateLog(sql, dialect, part, {
      change: `next_retry_at = CASE id ${part.map(({ message }) => `WHEN ${message.id} THEN ${nowPlusMs}`).join(' ')} END`,
      parameters: part.map(({ delayMs }) => delayMs),
    });
  }
}

async function park(sql: ChangingSql, dialect: Dialect, parked: readonly ParkedMessage[]): Promise<void> {
  for (const part of partsOf(parked, ROWS_PER_STATEMENT)) {
    await updateLog(sql, dialect, part, { change: 'status = 2, next_retry_at = NULL', parameters: [] });
    await sql.query(
      dialect.bind(
        `INSERT INTO ${dialect.tables.dead} (id, lane, topic, message_key) VALUES ` +
          part.map(({ message }) => `(${message.id}, ${message.lane}, ?, ?)`).join(', '),
      ),
      part.flatMap(({ message }) => [message.topic, holdKey(message)]),
    );
  }
}

async function updateLog(
  sql: ChangingSql,
  dialect: Dialect,
  refused: readonly RefusedMessage[],
  { change, parameters }: { change: string; parameters: readonly number[] },
): Promise<void> {
  const { tables, bind, now, idIn, updateByKey } = dialect;
  await sql.query(
    bind(
      `${updateByKey(tables.message)} SET retry_count = retry_count + 1, updated_at = ${now}, ${change},
       last_error = CASE id ${refused.map(({ message }) => `WHEN ${message.id} THEN ?`).join(' ')} END
       WHERE ${idIn('t.id', refused.map(({ message }) => message.id))}`,
    ),
    [...parameters, ...refused.map(({ error }) => error.slice(0, MAX_ERROR_LENGTH))],
  );
}

/** What was sent is written down by name, for the sweeper: that a message waits nowhere is no proof that it was sent. */
async function logSent(sql: ChangingSql, dialect: Dialect, sent: readonly ClaimedMessage[]): Promise<void> {
  if (sent.length === 0) return;
  await sql.query(
    dialect.bind(`INSERT INTO ${dialect.tables.settled} (settled_at, ids) VALUES (${dialect.now}, ?)`),
    [sent.map(({ id }) => id).join(',')],
  );
}

function toRef(message: ClaimedMessage): Ref {
  const { id, lane, bytes, source } = message;
  return { id, lane, bytes, source, place: source === 'pending' ? undefined : placeOf(message, source) };
}

function toHeldRow({ id, bytes }: ClaimedMessage, place: HoldPlace): HeldRow {
  return { id, bytes, place };
}
