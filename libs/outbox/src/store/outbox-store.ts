import { LanesMismatchError, TablesMissingError } from '../errors';
import { messageBytes } from '../event/to-message';
import { slotOf } from '../event/hash';
import type { OutboxMessage } from '../event/message';
import type { Dialect, NewMessage, Patience, Sql } from './dialect';
import { type MessageState, statesOf } from './message-state';
import { ORDER_BUCKETS } from './tables';
import { Turn } from './turn';

/** Whether the ids of one key follow the order in which transactions commit. */
export type Order = 'commit' | 'none';

/** A statement stays below the smallest common packet limits and parameter counts. */
const MAX_ROWS = 500;
export const MAX_STATEMENT_BYTES = 4 * 1024 * 1024;

/** What the outbox counts of itself. */
export interface Backlog {
  /** Messages that wait to be sent, held ones not counted. */
  readonly pending: number;
  /** Messages of keys whose first message was refused and is retried. */
  readonly held: number;
  /** Messages that were given up after the last attempt. */
  readonly dead: number;
  /** Age in ms of the oldest message that is not sent; `null` when there is none. */
  readonly oldestAge: number | null;
}

/** The tables, for those who write and look. Relays work on them through a {@link ClaimSession}. */
export class OutboxStore {
  /** What stands for the locks of all lanes where there is one connection: a claim lasts from one transaction to the next. */
  readonly turn = new Turn();

  constructor(
    readonly dialect: Dialect,
    readonly lanes: number,
    private readonly order: Order,
  ) {}

  /** @throws TablesMissingError, LanesMismatchError */
  async check(sql: Sql): Promise<void> {
    const { tables } = this.dialect;
    let lanes: number;
    try {
      for (const table of [tables.message, tables.pending, tables.hold, tables.held, tables.consumed, tables.failure, tables.sequence, tables.audit, tables.auditMessage]) {
        await sql.query(`SELECT 1 FROM ${table} WHERE 1 = 0`);
      }
      const rows = (await sql.query(`SELECT COUNT(*) AS count FROM ${tables.lane}`)) as { count: string | number }[];
      lanes = Number(rows[0]?.count);
    } catch (error) {
      throw new TablesMissingError(
        'The outbox tables are not there. Add outboxMigrations() to the data source\'s migrations and run them, or ' +
          'set createTables: true for development and tests.',
        { cause: error },
      );
    }
    if (lanes !== this.lanes) {
      throw new LanesMismatchError(
        `The tables were made for ${lanes} lanes and the options say ${this.lanes}. The number is fixed at migration.`,
      );
    }
  }

  /** Writes messages in the transaction of the given query runner. */
  async add(sql: Sql, messages: readonly OutboxMessage[]): Promise<void> {
    let buckets = this.order === 'commit' ? orderBuckets(messages) : [];
    for (const chunk of chunks(messages.map((message) => this.place(message)))) {
      await this.dialect.insertMessages(sql, chunk, buckets);
      buckets = [];
    }
  }

  /**
   * False when the consumer has had the message.
   *
   * @throws MessageInProgressError when another transaction is about to record it and has not ended in time
   */
  consume(sql: Sql, consumer: string, messageId: string, patience: Patience = 'wait'): Promise<boolean> {
    return this.dialect.insertConsumed(sql, consumer, messageId, patience);
  }

  /**
   * Which of several different messages the consumer has not had.
   *
   * @throws MessageInProgressError as for one; the transaction had better end then
   */
  async consumeBatch(
    sql: Sql,
    consumer: string,
    messageIds: readonly string[],
    patience: Patience,
  ): Promise<ReadonlySet<string>> {
    // In one order for all: batches that share messages then wait for each other, and do not deadlock.
    const sorted = messageIds.toSorted();
    const fresh = new Set<string>();
    for (let start = 0; start < sorted.length; start += MAX_ROWS) {
      const chunk = sorted.slice(start, start + MAX_ROWS);
      for (const id of await this.dialect.insertConsumedBatch(sql, consumer, chunk, patience)) fresh.add(id);
    }
    return fresh;
  }

  /** The highest place of the key by now, this one included; it is another when the event is older than the last. */
  advanceSequence(sql: Sql, consumer: string, key: string, place: string): Promise<string> {
    return this.dialect.advanceSequence(sql, consumer, key, place);
  }

  /** Counts one more failure of the consumer on the message, and says how many there have been. */
  countFailure(sql: Sql, consumer: string, messageId: string): Promise<number> {
    return this.dialect.countFailure(sql, consumer, messageId);
  }

  async forgetFailures(sql: Sql, consumer: string, messageId: string): Promise<void> {
    const { tables, bind } = this.dialect;
    await sql.query(bind(`DELETE FROM ${tables.failure} WHERE consumer = ? AND message_id = ?`), [consumer, messageId]);
  }

  /** Notes that a consumed message was not handled but went to the dead-letter topic, and may come again from there. */
  async markDeadLettered(sql: Sql, consumer: string, messageId: string): Promise<void> {
    const { tables, bind } = this.dialect;
    await sql.query(bind(`UPDATE ${tables.consumed} SET dead = 1 WHERE consumer = ? AND message_id = ?`), [consumer, messageId]);
  }

  /** Forgets that a message went to the dead-letter topic, so that it is handled when it comes again. */
  async forgetDeadLettered(sql: Sql, consumer: string, messageId: string): Promise<void> {
    const { tables, bind } = this.dialect;
    await sql.query(bind(`DELETE FROM ${tables.consumed} WHERE consumer = ? AND message_id = ? AND dead = 1`), [consumer, messageId]);
    await this.forgetFailures(sql, consumer, messageId);
  }

  async backlog(sql: Sql): Promise<Backlog> {
    const { tables, now, epochMs } = this.dialect;
    // The first of each lane and of each hold: the smallest id of a whole table is not to be had from its key.
    const first = (table: string, alias: string, condition: string): string =>
      `SELECT MIN(f.id) AS id FROM (SELECT (SELECT p.id FROM ${table} p WHERE ${condition} ` +
      `ORDER BY ${table === tables.held ? 'p.lane, p.topic, p.message_key, p.id' : 'p.lane, p.id'} LIMIT 1) AS id FROM ${alias}) f`;
    const rows = (await sql.query(
      `SELECT (SELECT COUNT(*) FROM ${tables.pending}) AS pending, (SELECT COUNT(*) FROM ${tables.held}) AS held,
        (SELECT COUNT(*) FROM ${tables.dead}) AS dead,
        (SELECT ${epochMs(now)} - ${epochMs('m.created_at')} FROM ${tables.message} m WHERE m.id =
          (SELECT MIN(u.id) FROM (${first(tables.pending, `${tables.lane} l`, 'p.lane = l.lane')} UNION ALL
            ${first(tables.held, `${tables.hold} l`, 'p.lane = l.lane AND p.topic = l.topic AND p.message_key = l.message_key')}) u)) AS oldest_age`,
    )) as Record<string, string | number | null>[];
    const row = rows[0] ?? {};
    const age = row['oldest_age'];
    return {
      pending: Number(row['pending']),
      held: Number(row['held']),
      dead: Number(row['dead']),
      oldestAge: age === null || age === undefined ? null : Math.max(0, Number(age)),
    };
  }

  /** The state of each message that is in the log, by the tables together. */
  statesOf(sql: Sql, messageIds: readonly string[]): Promise<ReadonlyMap<string, MessageState>> {
    return statesOf(sql, this.dialect, this.lanes, messageIds);
  }

  private place(message: OutboxMessage): NewMessage {
    return {
      message,
      lane: slotOf(message.topic, message.key ?? message.messageId, this.lanes),
      bytes: messageBytes(message),
    };
  }
}

/** Ids are given at the insert and seen at the commit: without these locks two transactions on one key may swap. */
function orderBuckets(messages: readonly OutboxMessage[]): readonly number[] {
  const buckets = new Set<number>();
  for (const { topic, key } of messages) {
    if (key !== null) buckets.add(slotOf(topic, key, ORDER_BUCKETS));
  }
  return [...buckets].sort((a, b) => a - b);
}

function* chunks(messages: readonly NewMessage[]): Generator<NewMessage[]> {
  let chunk: NewMessage[] = [];
  let bytes = 0;
  for (const message of messages) {
    if (chunk.length > 0 && (chunk.length === MAX_ROWS || bytes + message.bytes > MAX_STATEMENT_BYTES)) {
      yield chunk;
      chunk = [];
      bytes = 0;
    }
    chunk.push(message);
    bytes += message.bytes;
  }
  if (chunk.length > 0) yield chunk;
}
