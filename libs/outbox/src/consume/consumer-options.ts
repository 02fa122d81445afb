import type { ExecutionContext, Type } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { Patience } from '../store/dialect';
import type { Dedupe } from './dedupe';

/** What becomes of a message that fails for good. */
export type OnExhausted = 'dead-letter' | 'stop' | 'skip';

export interface RetryOptions {
  /** How often a handler is tried on one message in all, restarts included. Default 5. */
  readonly attempts?: number;
  /**
   * How many of these attempts are made before the message is handed back to the transport for redelivery. Default 3.
   * On a transport that does not deliver again, set it as high as `attempts`.
   */
  readonly attemptsPerDelivery?: number;
  /** Pause before the second attempt of a delivery, in milliseconds; it doubles for each further one. Default 200. */
  readonly backoff?: number;
  /** Longest such pause, in milliseconds. Default 10,000. */
  readonly maxBackoff?: number;
}

/** How failures and copies are handled. The module's `consume` option sets it for all consumers. */
export interface ConsumeOptions {
  readonly retry?: RetryOptions;
  /**
   * Whether another attempt can help after this error of a handler. Default: yes, unless the error has a property
   * `retryable` that is `false`, as this library's errors of the kind have.
   */
  readonly isRetryable?: (error: unknown) => boolean;
  /**
   * What becomes of a message after its last attempt, or at once when it has no usable id, does not validate or
   * failed with an error that is not retryable. `dead-letter`: it goes to the dead-letter topic and counts as
   * consumed, both in one transaction. `skip`: it counts as consumed. `stop`: its partition is paused until the app
   * restarts or somebody resumes it; nothing is lost. Default `dead-letter`.
   */
  readonly onExhausted?: OnExhausted;
  /**
   * What a second copy of a message does while the first is being handled: `wait` for the outcome as long as the
   * database lets a statement wait for a lock (50 seconds unless configured otherwise), or `fail` at once (on MySQL
   * after a second) and be delivered again later. Neither counts as an attempt. SQLite always waits. Default `wait`.
   */
  readonly concurrentCopies?: Patience;
  /**
   * A message without an id: `refuse` treats it as failed for good; `offset` recognises repeats by topic, partition
   * and offset, which sees redeliveries but not a message that was published twice. Default `refuse`.
   */
  readonly missingMessageId?: 'refuse' | 'offset';
}

/** What the module's `consume` option holds. */
export interface SharedConsumeOptions extends ConsumeOptions {
  /** For consumers with `dedupe: 'redis'`: `redisDedupe({ client })` of `nestjs-transactional-outbox/redis`. */
  readonly redis?: Dedupe;
}

/** What the payload is for handlers of these events. */
export type EventOf<E> = E extends readonly Type<infer I>[] ? (object extends I ? unknown : I) : unknown;

/** Keeps events of one key from taking effect after a newer one. */
export interface SequenceOptions<E extends readonly Type<object>[] = readonly Type<object>[]> {
  /**
   * The event's place among those of its key, such as a version: a whole number of 64 bits. One that is lower than the
   * last one handled is stale; an equal one is not.
   */
  of(event: EventOf<E>): bigint | number | string;
  /** What the sequence is kept for, 1 to 190 characters. Default: the message's key. */
  key?(event: EventOf<E>): string;
  /** `skip`: a stale message counts as consumed. `dead-letter`: it goes to the dead-letter topic. Default `skip`. */
  readonly onStale?: 'skip' | 'dead-letter';
}

interface CommonConsumerOptions<E extends readonly Type<object>[]> extends ConsumeOptions {
  /**
   * The events that the handler wants. Messages of other types are acknowledged and leave no trace; the payload
   * arrives as a validated instance of the event's class. Default: every message, with the payload as Nest gives it.
   */
  readonly events?: E;
  /**
   * The id that repeats are recognised by, from whatever the transport offers. Default: the Kafka header `id`. An
   * empty id or none is a missing one; one of more than 190 characters is refused.
   */
  readonly messageId?: (context: ExecutionContext) => string | undefined;
  /**
   * Topic for messages that fail for good. Default: the message's own topic and `.dlt`, or the consumer's name and
   * `.dlt` where the transport knows no topics.
   */
  readonly deadLetterTopic?: string;
  /** Name of the data source. Default `default`. */
  readonly dataSource?: string;
}

/** Repeats are recognised by a row that commits together with what the handler does. */
export interface TableConsumerOptions<E extends readonly Type<object>[]> extends CommonConsumerOptions<E> {
  /** How repeats are recognised. Default `table`. */
  readonly dedupe?: 'table';
  readonly isApplied?: never;
  /** Refuses events that are older than the last one handled of their key. Default: all are handled. */
  readonly sequence?: SequenceOptions<E>;
}

/**
 * Repeats are recognised by the business state, and nothing is recorded. Copies at the same time are kept apart by what
 * the handler itself locks: see {@link applyOnce}.
 */
export interface StateConsumerOptions<E extends readonly Type<object>[]> extends CommonConsumerOptions<E> {
  readonly dedupe: 'state';
  /** Says, in the transaction and before the handler, whether the message's effect is there already. */
  isApplied(event: EventOf<E>, manager: EntityManager): boolean | Promise<boolean>;
  readonly concurrentCopies?: never;
  /** Refuses events that are older than the last one handled of their key. Default: all are handled. */
  readonly sequence?: SequenceOptions<E>;
}

/**
 * Repeats are recognised by Redis, for handlers whose effects are outside the database; they run without a transaction.
 * The module's `consume.redis` must be set.
 */
export interface RedisConsumerOptions<E extends readonly Type<object>[]> extends CommonConsumerOptions<E> {
  readonly dedupe: 'redis';
  readonly isApplied?: never;
  readonly sequence?: never;
}

/** Repeats are recognised by the table. */
export interface BatchConsumerOptions<E extends readonly Type<object>[] = readonly Type<object>[]>
  extends CommonConsumerOptions<E> {
  /** Most messages that are handled in one transaction. Default 500. */
  readonly batchSize?: number;
}

export type IdempotentConsumerOptions<E extends readonly Type<object>[] = readonly Type<object>[]> =
  | TableConsumerOptions<E>
  | StateConsumerOptions<E>
  | RedisConsumerOptions<E>;

/** The options of one consumer, complete. */
export interface ConsumerPolicy {
  readonly retry: Required<RetryOptions>;
  readonly isRetryable: (error: unknown) => boolean;
  readonly onExhausted: OnExhausted;
  readonly concurrentCopies: Patience;
  readonly missingMessageId: 'refuse' | 'offset';
  readonly messageId: ((context: ExecutionContext) => string | undefined) | undefined;
  readonly deadLetterTopic: string | undefined;
  readonly sequence: SequenceOptions | undefined;
}

export const DEFAULT_RETRY: Required<RetryOptions> = { attempts: 5, attemptsPerDelivery: 3, backoff: 200, maxBackoff: 10_000 };

/** The consumer's own options over the module's over the defaults. */
export function consumerPolicy(own: IdempotentConsumerOptions, shared: ConsumeOptions): ConsumerPolicy {
  const pick = <K extends keyof ConsumeOptions>(name: K): ConsumeOptions[K] => own[name] ?? shared[name];
  return {
    retry: { ...DEFAULT_RETRY, ...shared.retry, ...own.retry },
    isRetryable: neverThrowing(pick('isRetryable') ?? isRetryable),
    onExhausted: pick('onExhausted') ?? 'dead-letter',
    concurrentCopies: pick('concurrentCopies') ?? 'wait',
    missingMessageId: pick('missingMessageId') ?? 'refuse',
    messageId: own.messageId,
    deadLetterTopic: own.deadLetterTopic,
    sequence: own.sequence,
  };
}

/** Where the app cannot say, the error is one that may pass: the limit of attempts counts all the same. */
function neverThrowing(decide: (error: unknown) => boolean): (error: unknown) => boolean {
  return (error) => {
    try {
      return decide(error);
    } catch {
      return true;
    }
  };
}

function isRetryable(error: unknown): boolean {
  return !(typeof error === 'object' && error !== null && 'retryable' in error && error.retryable === false);
}
