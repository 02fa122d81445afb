import { OutboxOptionsError } from '../errors';
import type { SettleMode } from '../store/sweep';
import type { AfterParking } from './settlement';

/** How the relay works. Times are in milliseconds. */
export interface RelayOptions {
  /** Whether this process relays. Default true. */
  readonly enabled?: boolean;
  /** Workers, each with a connection and a publisher of its own. Default 2; on SQLite always 1. */
  readonly concurrency?: number;
  /** Messages that a worker takes at once. Default 1000. */
  readonly batchSize?: number;
  /** Bytes of payload that a worker takes at once. Default 4 MiB. */
  readonly batchBytes?: number;
  /** Lanes that a worker takes at once. Default 16. */
  readonly lanesPerClaim?: number;
  /**
   * How often to look without being woken. Commits of other processes are found so on MySQL and MariaDB; on PostgreSQL
   * they are told. Default 500 ms.
   */
  readonly pollInterval?: number;
  /** The same when there has been nothing to send for 30 s. Default 1000 ms. */
  readonly idlePollInterval?: number;
  /** How long the broker may take to answer a batch, the client's own retries included. Default 3000 ms. */
  readonly publishTimeout?: number;
  /**
   * How long the database waits for a silent relay before it gives the relay's lanes to others: what a frozen host
   * costs. At least `publishTimeout` + 2000 ms. MySQL and MariaDB round it up to seconds. Default 10 s.
   */
  readonly sessionTimeout?: number;
  /** Attempts before a refused message is parked as dead. Default 5. */
  readonly maxAttempts?: number;
  /** Pause before the second attempt; it doubles with each further one, and is spread by a quarter. Default 1000 ms. */
  readonly retryDelay?: number;
  /** Longest pause between attempts, and between tries to reach a broker or database that is away. Default 30 s. */
  readonly maxRetryDelay?: number;
  /**
   * What becomes of a key whose first message was parked. `continue`: its later messages are sent. `block`: they wait
   * until an operator decides. A function decides for each message, by its topic or type. Default `continue`.
   */
  readonly onExhausted?: AfterParking | ((message: ExhaustedMessage) => AfterParking);
  /**
   * What becomes of the log's row of a sent message, some seconds later. `mark`: status 1 and `sent_at`, so that there
   * is a history. `delete`: it is deleted. Default `mark`.
   */
  readonly settle?: SettleMode;
  /** How long shutdown waits for the running batch. Default 10 s. */
  readonly shutdownTimeout?: number;
}

/** A message that was refused `maxAttempts` times. */
export interface ExhaustedMessage {
  readonly messageId: string;
  readonly topic: string;
  readonly key: string | null;
  readonly type: string;
}

export const DEFAULT_RELAY_OPTIONS: Required<RelayOptions> = {
  enabled: true,
  concurrency: 2,
  batchSize: 1000,
  batchBytes: 4 * 1024 * 1024,
  lanesPerClaim: 16,
  pollInterval: 500,
  idlePollInterval: 1000,
  publishTimeout: 3000,
  sessionTimeout: 10_000,
  maxAttempts: 5,
  retryDelay: 1000,
  maxRetryDelay: 30_000,
  onExhausted: 'continue',
  settle: 'mark',
  shutdownTimeout: 10_000,
};

/** What a claim needs besides the time for publishing: to be read, settled, and a publisher closed in between. */
const SESSION_ROOM = 2000;

/** @throws OutboxOptionsError naming the option */
export function checkRelayOptions(options: Required<RelayOptions>): void {
  const { enabled, onExhausted, settle, ...numbers } = options;
  if (typeof enabled !== 'boolean') throw new OutboxOptionsError('relay.enabled must be true or false.');
  if (onExhausted !== 'continue' && onExhausted !== 'block' && typeof onExhausted !== 'function') {
    throw new OutboxOptionsError('relay.onExhausted must be "continue", "block" or a function that says which.');
  }
  if (settle !== 'mark' && settle !== 'delete') throw new OutboxOptionsError('relay.settle must be "mark" or "delete".');
  for (const [name, value] of Object.entries(numbers)) {
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new OutboxOptionsError(`relay.${name} must be a whole number of at least 1, not ${String(value)}.`);
    }
  }
  const least = options.publishTimeout + SESSION_ROOM;
  if (options.sessionTimeout < least) {
    throw new OutboxOptionsError(
      `relay.sessionTimeout must be at least publishTimeout + ${SESSION_ROOM} ms (${least}), not ${options.sessionTimeout}: ` +
        'the database would give the lanes to others while a batch is being published.',
    );
  }
}

/** The age from which on a claim is not published any more: the answer might come after its lanes were lost. */
export function oldestClaimToPublish({ sessionTimeout, publishTimeout }: Required<RelayOptions>): number {
  return sessionTimeout - publishTimeout - SESSION_ROOM / 2;
}
