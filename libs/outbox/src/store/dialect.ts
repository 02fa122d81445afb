import type { OutboxMessage } from '../event/message';
import type { Key, KeyedTable, Statement } from './key-deletes';
import type { HeadLimits, LaneHead } from './lane-heads';
import type { Partitions } from './partitions';
import type { TableNames } from './tables';

/** Sends statements: a query runner, or a data source where no transaction is needed. */
export interface Sql {
  query(statement: string, parameters?: unknown[]): Promise<unknown>;
}

/**
 * What a copy of a message does while another is being handled: `wait` as long as the database lets a statement wait
 * for a lock, or `fail` at once.
 */
export type Patience = 'wait' | 'fail';

/** A message on its way into the log. */
export interface NewMessage {
  readonly message: OutboxMessage;
  readonly lane: number;
  /** What it weighs in a batch. */
  readonly bytes: number;
}

/**
 * What differs between databases. Everything else is the same SQL, written with `?` for parameters.
 */
export interface Dialect {
  readonly name: 'mysql' | 'mariadb' | 'postgres' | 'sqlite';
  /** Tables with their schema, quoted. */
  readonly tables: TableNames;
  /** How lanes are locked, for who wants to know. */
  readonly laneLocks: 'skip-locked' | 'named-locks' | 'advisory-locks' | 'none';
  /** What makes a SELECT lock its rows and pass by those that others have locked, as far as the database can. */
  readonly forUpdateSkipLocked: string;
  /** The current UTC time, the same throughout a statement, as an expression. */
  readonly now: string;
  /** The UTC time in so many milliseconds, as an expression with one parameter. */
  readonly nowPlusMs: string;
  /** A time column as milliseconds since 1970. */
  epochMs(column: string): string;
  /** The condition that a bigint column is one of many ids, given as decimal texts. */
  idIn(column: string, ids: readonly string[]): string;
  /** A bigint column as decimal text. */
  idText(column: string): string;
  /** The id that the last insert on this connection has been given, as an expression. */
  readonly lastId: string;
  /** The statement with its parameters as the driver wants them. */
  bind(sql: string): string;
  /** The statements that make the tables, the log partitioned or not. Each can run again. */
  createTables(lanes: number, partitioned?: boolean): readonly string[];
  /** How the log is partitioned, where the database can do that. */
  readonly partitions: Partitions | null;
  dropTables(): readonly string[];
  /**
   * Appends to the log and to the pending table, after it has waited for the order buckets, given in ascending order,
   * which it keeps until the transaction ends.
   */
  insertMessages(sql: Sql, messages: readonly NewMessage[], buckets: readonly number[]): Promise<void>;
  /** Locks up to `limit` free lanes, from `first` up to and without `end`, that have something to send. */
  lockLanes(sql: Sql, first: number, end: number, limit: number): Promise<readonly number[]>;
  /** Reads what stands first in each of the lanes: messages by their ids, holds by their times. */
  readHeads(sql: Sql, lanes: readonly number[], limits: HeadLimits): Promise<readonly LaneHead[]>;
  /** Waits for lanes, given in ascending order, as long as the session's timeout lets it. */
  waitForLanes(sql: Sql, lanes: readonly number[]): Promise<void>;
  /** Gives lanes back, after the transaction has ended, where that did not do it. */
  unlockLanes(sql: Sql, lanes: readonly number[]): Promise<void>;
  /** Takes, without waiting, the right to clean the tables; the end of the connection gives it back. */
  lockCleaner(sql: Sql): Promise<boolean>;
  /**
   * Deletes rows, called `t`, that have the given keys and fulfil the condition. On MySQL and MariaDB it must reach
   * them one by one: on a small table a scan looks cheaper to them, and would wait for rows that others have locked.
   */
  deleteByKey(table: KeyedTable, keys: readonly Key[], condition?: string): Statement;
  /** The head of an UPDATE that reaches rows of the table, called `t`, by primary key only, for the same reason. */
  updateByKey(table: string): string;
  /** What makes an INSERT into the hold table replace the time and the state of a hold that is there. */
  readonly replaceHold: string;
  /** Statements that make a session fit for a relay: READ COMMITTED, and lost by the server when it is silent. */
  sessionSettings(timeoutMs: number): readonly string[];
  /** A query for the session's isolation level, as one row with one column. */
  readonly isolationQuery: string;
  /** Statements by which processes tell one another that something was committed, where the database can do that. */
  readonly commitSignal: { readonly send: string; readonly listen: string } | null;
  /** A query for the rows `n` and the size `bytes` of each table by its `name`, as the database estimates them, where it does. */
  readonly tableSizes: string | null;
  /** Makes a pool of the driver fit for connections that the server may end at any moment. */
  preparePool(driver: object): void;
  /** Ends a connection of the driver that is doing nothing, with a word to the server: else it logs a warning. */
  quit(connection: unknown): void;
  /** Ends a connection of the driver at once, whatever it is doing. */
  abandon(connection: unknown): void;
  /** The condition that a column is the lane, so that rows come in the order of the index behind it. */
  laneIs(column: string, lane: number): string;
  /** One query that reads several ranges, each with its own limit. */
  unionAll(queries: readonly string[]): string;
  /**
   * Records the message; false when it is recorded already.
   *
   * @throws MessageInProgressError when another transaction is about to record it and has not ended in time
   */
  insertConsumed(sql: Sql, consumer: string, messageId: string, patience: Patience): Promise<boolean>;
  /**
   * Records several different messages, given in the order of their ids, and says which were not recorded yet.
   *
   * @throws MessageInProgressError as for one; nothing has been done then, and the transaction had better end
   */
  insertConsumedBatch(sql: Sql, consumer: string, messageIds: readonly string[], patience: Patience): Promise<readonly string[]>;
  /**
   * Takes note of an event's place in the sequence of its key, and locks the key until the transaction ends. Answers the
   * highest place by now, as decimal text: another than the given one when the event is older than the last.
   */
  advanceSequence(sql: Sql, consumer: string, key: string, place: string): Promise<string>;
  /** Counts one more failure of the consumer on the message, and says how many there have been. */
  countFailure(sql: Sql, consumer: string, messageId: string): Promise<number>;
}

/** Columns that a new message fills, in this order. */
export const MESSAGE_COLUMNS = [
  'message_id',
  'aggregate_type',
  'aggregate_id',
  'message_key',
  'tenant_id',
  'traceparent',
  'correlation_id',
  'causation_id',
  'event_type',
  'topic',
  'headers',
  'payload',
] as const;

/** The values of {@link MESSAGE_COLUMNS}. */
export function messageValues(message: OutboxMessage): (string | null)[] {
  return [
    message.messageId,
    message.aggregateType,
    message.aggregateId,
    message.key,
    message.tenantId,
    message.traceparent,
    message.correlationId,
    message.causationId,
    message.type,
    message.topic,
    Object.keys(message.headers).length > 0 ? JSON.stringify(message.headers) : null,
    message.payload,
  ];
}

/** The condition under which a lane, called `l`, has something to send. */
export function laneHasWork({ tables, now }: Pick<Dialect, 'tables' | 'now'>): string {
  // Scalar subqueries, since EXISTS becomes a semi-join on MySQL, which reads every pending row.
  return (
    `(l.paused = 0 AND ((SELECT p.id FROM ${tables.pending} p WHERE p.lane = l.lane LIMIT 1) IS NOT NULL ` +
    // Without a single hold, which is the rule, no lane is asked for its own.
    `OR ((SELECT 1 FROM ${tables.hold} LIMIT 1) IS NOT NULL AND ` +
    `(SELECT h.lane FROM ${tables.hold} h WHERE h.lane = l.lane AND h.retry_at <= ${now} LIMIT 1) IS NOT NULL)))`
  );
}

/** Tables by their quoted names. */
export function quotedTables(tables: TableNames, quote: (name: string) => string): TableNames {
  return Object.fromEntries(Object.entries(tables).map(([key, name]) => [key, quote(name)])) as unknown as TableNames;
}

/** `lanes` numbers from 0, as rows of a VALUES list. */
export function numberRows(count: number): string {
  return Array.from({ length: count }, (_, index) => `(${index})`).join(', ');
}
