import { OutboxOptionsError } from '../errors';
import { assertKnown } from '../event/assert-known';
import type { PurgeMode } from '../store/purge';

/** How long rows are kept, and how gently they are taken away. Times are in milliseconds, by the database's clock. */
export interface RetentionRules {
  /** Age from which on a message that was given up leaves the log, counted from then. Default `false`: an operator decides about them. */
  readonly dead?: number | false;
  /**
   * How long consumers remember the messages that they have handled: a message that comes again later is handled
   * again. It must be longer than topics keep their records, which is 7 days by default. Default 14 days.
   */
  readonly consumed?: number | false;
  /** How long the failed attempts on a message are remembered after the last. Default 14 days. */
  readonly failures?: number | false;
  /** How long it is remembered what operators have done. Default 365 days. */
  readonly audit?: number | false;
  /**
   * How long the place of a key, for consumers with a `sequence`, is kept after its last event. Afterwards an older event
   * of that key that comes again is taken for new: from the topic, a replay, or a dead letter. So it must be longer than
   * topics keep their records and than anybody brings old ones back. Default `false`: places are kept for good.
   */
  readonly sequences?: number | false;
  /** How long archived messages are kept in `outbox_history` afterwards. Default `false`: for good. */
  readonly history?: number | false;
  /** Rows of one transaction. Default 1000. */
  readonly batchSize?: number;
  /** Pause between transactions. Default 100 ms. */
  readonly pause?: number;
  /** From one pass to the next; the first begins after a minute. Default 1 hour. */
  readonly interval?: number;
}

/** Messages leave the log row by row. */
export interface RowRetention extends RetentionRules {
  /** Age of a sent message from which on it leaves the log. `false`: never. Default 7 days. */
  readonly sent?: number | false;
  /** What becomes of old messages: `delete`, or `archive`, to the table `outbox_history`. Default `delete`. */
  readonly mode?: PurgeMode;
  readonly ahead?: never;
}

/** Messages leave the log a day at a time. It needs `outboxMigrations({ partitioned: true })`, and the rights to alter and drop. */
export interface PartitionRetention extends RetentionRules {
  /**
   * Partitions of the log are made ahead, and dropped when each of their messages was sent, or discarded, longer ago than
   * `sent`. One in which a message waits, was given up or is lost stays, and is cleaned row by row.
   */
  readonly mode: 'partition';
  /** Age of a sent message from which on it leaves the log, with all others of its day. Default 7 days. */
  readonly sent?: number;
  /** Days for which partitions are made ahead, 1 to 30. Default 3. */
  readonly ahead?: number;
}

export type RetentionOptions = RowRetention | PartitionRetention;

export type RetentionMode = PurgeMode | 'partition';

/** The rules, complete and checked. */
export type Retention = Required<RetentionRules> & { readonly sent: number | false; readonly mode: RetentionMode; readonly ahead: number };

const DAY = 24 * 3600 * 1000;

export const DEFAULT_RETENTION: Retention = {
  sent: 7 * DAY,
  dead: false,
  consumed: 14 * DAY,
  failures: 14 * DAY,
  audit: 365 * DAY,
  sequences: false,
  history: false,
  mode: 'delete',
  ahead: 3,
  batchSize: 1000,
  pause: 100,
  interval: 3600 * 1000,
};

/** Most rows that one statement names by their keys. */
const MAX_BATCH = 10_000;
const MAX_AHEAD = 30;

/** Rules with others put in. @throws OutboxOptionsError naming the option */
export function retentionOf(rules: Retention, given: RetentionOptions): Retention {
  if (typeof given !== 'object' || given === null) throw new OutboxOptionsError('retention must be an object of rules, or false.');
  assertKnown(given, DEFAULT_RETENTION, 'retention.');
  const retention = { ...rules, ...given } as Retention;
  const { mode, ahead, batchSize, pause, interval, ...ages } = retention;
  if (mode !== 'delete' && mode !== 'archive' && mode !== 'partition') throw new OutboxOptionsError('retention.mode must be "delete", "archive" or "partition".');
  for (const [name, value] of Object.entries(ages)) if (value !== false) assertWhole(name, value, 0);
  if (mode === 'partition' && ages.sent === false) throw new OutboxOptionsError('retention.sent must be an age with mode "partition": without one no partition is ever dropped.');
  if (mode !== 'partition' && given.ahead !== undefined) throw new OutboxOptionsError('retention.ahead is for mode "partition".');
  assertWhole('ahead', ahead, 1);
  if (ahead > MAX_AHEAD) throw new OutboxOptionsError(`retention.ahead must be at most ${MAX_AHEAD}, not ${ahead}.`);
  assertWhole('batchSize', batchSize, 1);
  if (batchSize > MAX_BATCH) throw new OutboxOptionsError(`retention.batchSize must be at most ${MAX_BATCH}, not ${batchSize}.`);
  assertWhole('pause', pause, 0);
  assertWhole('interval', interval, 1);
  return retention;
}

const NEVER_FALSE: ReadonlySet<string> = new Set(['batchSize', 'pause', 'interval', 'ahead']);

function assertWhole(name: string, value: unknown, least: number): void {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return;
  const never = NEVER_FALSE.has(name) ? '' : ', or false';
  throw new OutboxOptionsError(`retention.${name} must be a whole number of at least ${least}${never}, not ${String(value)}.`);
}
