import { groupBy } from '../event/group-by';
import type { ClaimedMessage, RefusedMessage, Settlement } from './claim';
import type { Dialect, Sql } from './dialect';
import { holdKey, orderKey } from './order-key';

/** Longest error text that is kept, in characters. */
const MAX_ERROR_LENGTH = 2000;

/** Records what became of a claim's messages, in the transaction that holds their lanes. */
export async function settle(sql: Sql, dialect: Dialect, settlement: Settlement): Promise<void> {
  const parked = settlement.parked.map(({ message }) => message);
  for (const refused of settlement.retried) await hold(sql, dialect, refused, refused.delayMs);
  for (const refused of settlement.parked) await park(sql, dialect, refused);
  const done = [...settlement.sent, ...parked];
  await removePending(sql, dialect, done.filter((message) => !message.held));
  await removeHeld(sql, dialect, done.filter((message) => message.held), settlement);
}

/** Moves messages from the table that claims read to the one of their held key. */
export async function moveToHeld(sql: Sql, dialect: Dialect, messages: readonly ClaimedMessage[]): Promise<void> {
  if (messages.length === 0) return;
  const { tables, bind } = dialect;
  for (const ofKey of groupBy(messages, orderKey).values()) {
    const [first] = ofKey;
    if (!first) continue;
    await sql.query(
      bind(
        `INSERT INTO ${tables.held} (topic, message_key, id, bytes) SELECT ?, ?, p.id, p.bytes
         FROM ${tables.pending} p WHERE p.lane = ${first.lane} AND p.id IN (${idList(ofKey)})`,
      ),
      [first.topic, holdKey(first)],
    );
  }
  await removePending(sql, dialect, messages);
}

async function hold(sql: Sql, dialect: Dialect, refused: RefusedMessage, delayMs: number): Promise<void> {
  const { tables, bind, now, nowPlusMs } = dialect;
  const { message, error } = refused;
  await sql.query(
    bind(
      `UPDATE ${tables.message} SET retry_count = retry_count + 1, next_retry_at = ${nowPlusMs}, last_error = ?,
       updated_at = ${now} WHERE id = ${message.id}`,
    ),
    [delayMs, error.slice(0, MAX_ERROR_LENGTH)],
  );
  if (message.held) {
    await retryHoldAt(sql, dialect, message, delayMs);
  } else {
    await sql.query(
      bind(`INSERT INTO ${tables.hold} (topic, message_key, lane, retry_at) VALUES (?, ?, ${message.lane}, ${nowPlusMs})`),
      [message.topic, holdKey(message), delayMs],
    );
    await moveToHeld(sql, dialect, [message]);
  }
}

async function park(sql: Sql, dialect: Dialect, { message, error }: RefusedMessage): Promise<void> {
  const { tables, bind, now } = dialect;
  await sql.query(
    bind(
      `UPDATE ${tables.message} SET status = 2, retry_count = retry_count + 1, next_retry_at = NULL, last_error = ?,
       updated_at = ${now} WHERE id = ${message.id}`,
    ),
    [error.slice(0, MAX_ERROR_LENGTH)],
  );
}

async function removePending(sql: Sql, dialect: Dialect, messages: readonly ClaimedMessage[]): Promise<void> {
  if (messages.length === 0) return;
  const byLane = groupBy(messages, (message) => message.lane);
  const conditions = [...byLane].map(
    ([lane, inLane]) => `(lane = ${lane} AND id IN (${idList(inLane)}))`,
  );
  await sql.query(`DELETE FROM ${dialect.tables.pending} WHERE ${conditions.join(' OR ')}`);
}

async function removeHeld(
  sql: Sql,
  dialect: Dialect,
  messages: readonly ClaimedMessage[],
  { retried }: Settlement,
): Promise<void> {
  const { tables, bind } = dialect;
  const waiting = new Set(retried.map(({ message }) => orderKey(message)));
  for (const [key, ofKey] of groupBy(messages, (message) => orderKey(message))) {
    const [first] = ofKey;
    if (!first) continue;
    const which = [first.topic, holdKey(first)];
    await sql.query(
      bind(
        `DELETE FROM ${tables.held} WHERE topic = ? AND message_key = ? ` +
          `AND id IN (${idList(ofKey)})`,
      ),
      which,
    );
    await sql.query(
      bind(
        `DELETE FROM ${tables.hold} WHERE topic = ? AND message_key = ? AND NOT EXISTS
         (SELECT 1 FROM ${tables.held} h WHERE h.topic = ? AND h.message_key = ?)`,
      ),
      [...which, ...which],
    );
    // The next of the key is due at once, unless it was refused in this very batch.
    if (!waiting.has(key)) await retryHoldAt(sql, dialect, first, 0);
  }
}

async function retryHoldAt(sql: Sql, dialect: Dialect, message: ClaimedMessage, delayMs: number): Promise<void> {
  const { tables, bind, nowPlusMs } = dialect;
  await sql.query(
    bind(`UPDATE ${tables.hold} SET retry_at = ${nowPlusMs} WHERE topic = ? AND message_key = ?`),
    [delayMs, message.topic, holdKey(message)],
  );
}

function idList(messages: readonly ClaimedMessage[]): string {
  return messages.map((message) => message.id).join(', ');
}
