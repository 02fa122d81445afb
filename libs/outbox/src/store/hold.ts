import type { ChangingSql } from './connection';
import type { Dialect, Sql } from './dialect';
import { hasKey, type Key } from './key-deletes';
import { type HoldPlace, placeName, TOPIC_HOLD_KEY } from './order-key';
import { partsOf } from './parts-of';

/** Rows of one statement that names each with its values. */
const ROWS_PER_STATEMENT = 500;
/** A hold that nobody but an operator ends is due in a hundred years. */
export const NEVER_MS = 100 * 365 * 24 * 3600 * 1000;

/**
 * Why a key, or a topic, is held. `retry`: its first message is tried again later. `blocked`: that was given up, and
 * those behind it wait for an operator. `topic`: the topic does not exist. `stopped`: an operator has stopped the key.
 * `paused`: an operator has paused the topic.
 */
export type HoldState = 'retry' | 'blocked' | 'topic' | 'stopped' | 'paused';

export interface NewHold {
  readonly place: HoldPlace;
  readonly state: HoldState;
  /** `null`: it does not end by itself. */
  readonly delayMs: number | null;
}

/** A message that waits behind a hold. */
export interface HeldRow {
  readonly id: string;
  readonly bytes: number;
  readonly place: HoldPlace;
}

/** Makes holds, or sets the time of those that are there. */
export async function holdAll(sql: ChangingSql, dialect: Dialect, holds: readonly NewHold[]): Promise<void> {
  const { tables, bind, nowPlusMs, replaceHold } = dialect;
  const byPlace = [...new Map(holds.map((hold) => [placeName(hold.place), hold])).values()];
  for (const part of partsOf(byPlace, ROWS_PER_STATEMENT)) {
    await sql.query(
      bind(
        `INSERT INTO ${tables.hold} (lane, topic, message_key, retry_at, state) VALUES ` +
          `${part.map(({ place, state }) => `(${place.lane}, ?, ?, ${nowPlusMs}, '${state}')`).join(', ')} ${replaceHold}`,
      ),
      part.flatMap(({ place, delayMs }) => [place.topic, place.key, delayMs ?? NEVER_MS]),
    );
  }
}

/** Puts messages behind their holds. They have been taken from where they were. */
export async function moveToHeld(sql: ChangingSql, dialect: Dialect, rows: readonly HeldRow[]): Promise<void> {
  for (const part of partsOf(rows, ROWS_PER_STATEMENT)) {
    await sql.query(
      dialect.bind(
        `INSERT INTO ${dialect.tables.held} (lane, topic, message_key, id, bytes) VALUES ` +
          part.map(({ id, bytes, place }) => `(${place.lane}, ?, ?, ${id}, ${bytes})`).join(', '),
      ),
      part.flatMap(({ place }) => [place.topic, place.key]),
    );
  }
}

/** Takes messages from behind their holds, and tells how many were there. */
export async function removeHeld(sql: ChangingSql, dialect: Dialect, rows: readonly HeldRow[]): Promise<number> {
  let removed = 0;
  for (const part of partsOf(rows, ROWS_PER_STATEMENT)) {
    const { sql: statement, parameters } = dialect.deleteByKey(
      'held',
      part.map(({ id, place }) => [place.lane, place.topic, place.key, id]),
    );
    removed += await sql.change(dialect.bind(statement), parameters);
  }
  return removed;
}

/** Ends the holds that nothing waits behind any more, and makes the others due. */
export async function releaseHolds(sql: ChangingSql, dialect: Dialect, places: readonly HoldPlace[]): Promise<void> {
  const { bind, now, tables, deleteByKey, updateByKey } = dialect;
  for (const part of partsOf(places, ROWS_PER_STATEMENT)) {
    // A look of its own: as a condition of the DELETE, MySQL would lock what it looks at.
    const waited = await waitedFor(sql, dialect, part);
    const [ended, due] = [part.filter((place) => !waited.has(place)), part.filter((place) => waited.has(place))];
    if (ended.length > 0) {
      const statement = deleteByKey('hold', ended.map(toKey));
      await sql.query(bind(statement.sql), statement.parameters);
    }
    if (due.length > 0) {
      const which = hasKey('hold', due.map(toKey));
      await sql.query(bind(`${updateByKey(tables.hold)} SET retry_at = ${now} WHERE ${which.sql}`), which.parameters);
    }
  }
}

/** Those of the holds that a message waits behind. */
async function waitedFor(sql: ChangingSql, dialect: Dialect, places: readonly HoldPlace[]): Promise<ReadonlySet<HoldPlace>> {
  const queries = places.map(
    ({ lane }, index) =>
      `SELECT ${index} AS place FROM ${dialect.tables.held} w WHERE w.lane = ${lane} AND w.topic = ? AND w.message_key = ? LIMIT 1`,
  );
  const rows = (await sql.query(
    dialect.bind(dialect.unionAll(queries)),
    places.flatMap(({ topic, key }) => [topic, key]),
  )) as { place: number }[];
  return new Set(rows.flatMap(({ place }) => places[Number(place)] ?? []));
}

/** Ends holds that only an operator ends: what waits behind them goes on, unless its topic is paused. */
export async function endHolds(sql: ChangingSql, dialect: Dialect, places: readonly HoldPlace[]): Promise<void> {
  const { bind, tables, updateByKey } = dialect;
  const states = await readHolds(sql, dialect, places.map((place) => ({ ...place, key: TOPIC_HOLD_KEY })));
  const isPaused = (place: HoldPlace): boolean => states.get(placeName({ ...place, key: TOPIC_HOLD_KEY })) === 'paused';
  for (const [state, group] of [['paused', places.filter(isPaused)], ['retry', places.filter((place) => !isPaused(place))]] as const) {
    for (const part of partsOf(group, ROWS_PER_STATEMENT)) {
      const which = hasKey('hold', part.map(toKey));
      await sql.query(bind(`${updateByKey(tables.hold)} SET state = '${state}' WHERE ${which.sql}`), which.parameters);
    }
    if (state === 'retry') await releaseHolds(sql, dialect, group);
  }
}

/** Those of the places at which there is a hold, by name, and why. */
export async function readHolds(sql: Sql, dialect: Dialect, places: readonly HoldPlace[]): Promise<ReadonlyMap<string, HoldState>> {
  const states = new Map<string, HoldState>();
  for (const part of partsOf([...new Map(places.map((place) => [placeName(place), place])).values()], ROWS_PER_STATEMENT)) {
    const which = hasKey('hold', part.map(toKey));
    const rows = (await sql.query(
      dialect.bind(`SELECT t.lane AS lane, t.topic AS topic, t.message_key AS message_key, t.state AS state FROM ${dialect.tables.hold} t WHERE ${which.sql}`),
      which.parameters,
    )) as { lane: number; topic: string; message_key: string; state: HoldState }[];
    for (const row of rows) states.set(placeName({ lane: Number(row.lane), topic: row.topic, key: row.message_key }), row.state);
  }
  return states;
}

function toKey({ lane, topic, key }: HoldPlace): Key {
  return [lane, topic, key];
}
