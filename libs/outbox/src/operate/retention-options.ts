import { OutboxOptionsError } from '../errors';
import type { PurgeMode } from '../store/purge';

/** How long rows are kept, and how gently they are taken away. Times are in milliseconds, by the database's clock. */
export interface RetentionOptions {
  /** Age of a sent message from which on it leaves the log. `false`: never. Default 7 days. */
  readonly sent?: number | false;
  /** The same for messages that were given up, counted from then. Default `false`: an operator decides about them. */
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
  /** What becomes of old messages: `delete`, or `archive`, to the table `outbox_history`. Default `delete`. */
  readonly mode?: PurgeMode;
  /** Rows of one transaction. Default 1000. */
  readonly batchSize?: number;
  /** Pause between transactions. Default 100 ms. */
  readonly pause?: number;
  /** From one pass to the next; the first begins after a minute. Default 1 hour. */
  readonly interval?: number;
}

export type Retention = Required<RetentionOptions>;

const DAY = 24 * 3600 * 1000;

export const DEFAULT_RETENTION: Retention = {
  sent: 7 * DAY,
  dead: false,
  consumed: 14 * DAY,
  failures: 14 * DAY,
  audit: 365 * DAY,
  mode: 'delete',
  batchSize: 1000,
  pause: 100,
  interval: 3600 * 1000,
};

/** Most rows that one statement names by their keys. */
const MAX_BATCH = 10_000;

/** @throws OutboxOptionsError naming the option */
export function checkRetention({ mode, batchSize, pause, interval, ...ages }: Retention): void {
  if (mode !== 'delete' && mode !== 'archive') throw new OutboxOptionsError('retention.mode must be "delete" or "archive".');
  for (const [name, value] of Object.entries(ages)) if (value !== false) assertWhole(name, value, 0);
  assertWhole('batchSize', batchSize, 1);
  if (batchSize > MAX_BATCH) throw new OutboxOptionsError(`retention.batchSize must be at most ${MAX_BATCH}, not ${batchSize}.`);
  assertWhole('pause', pause, 0);
  assertWhole('interval', interval, 1);
}

function assertWhole(name: string, value: unknown, least: number): void {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return;
  const never = name === 'batchSize' || name === 'pause' || name === 'interval' ? '' : ', or false';
  throw new OutboxOptionsError(`retention.${name} must be a whole number of at least ${least}${never}, not ${String(value)}.`);
}
