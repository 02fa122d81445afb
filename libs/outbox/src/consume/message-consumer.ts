import { MessageInProgressError, MessageStaleError, NoTransactionError, RedisUnavailableError } from '../errors';
import { withMessageContext } from '../event/message-context';
import type { OutboxTracing } from '../event/tracing';
import type { OutboxStore } from '../store/outbox-store';
import type { AmbientTransactions } from '../transaction/ambient-transactions';
import type { TransactionRunner } from '../transaction/transaction-runner';
import type { ConsumerEvents, FailureKind } from './consumer-events';
import type { ConsumerMetadata } from './consumer-metadata';
import { type ConsumeOptions, type ConsumerPolicy, consumerPolicy, type OnExhausted } from './consumer-options';
import { deadLetter } from './dead-letter';
import type { Delivery } from './delivery';
import type { IdempotentRunner, IdempotentRunOptions } from './idempotent-runner';
import { incomingContext } from './incoming-context';
import { keepAlive, pause } from './keep-alive';
import { messageIdOf, originId } from './message-id';
import { assertNotStale, type Place, placeOf } from './sequence';
import { transportError } from './transport-error';
import { readEvent } from './typed-event';

export interface MessageConsumerOptions {
  readonly ambient: AmbientTransactions;
  readonly transactions: TransactionRunner;
  readonly store: OutboxStore;
  readonly runner: IdempotentRunner;
  readonly events: ConsumerEvents;
  readonly defaults: ConsumeOptions;
  readonly tracing?: OutboxTracing | undefined;
}

/** Runs the handler; a typed consumer's is given the event. */
export type Handle = (event: object | undefined) => Promise<unknown>;

/** A delivery on its way through one consumer. */
interface Case {
  readonly consumer: ConsumerMetadata;
  readonly policy: ConsumerPolicy;
  readonly delivery: Delivery;
  /** `undefined` when the message has none that can be used. */
  readonly messageId: string | undefined;
  /** The event of a typed consumer. */
  readonly event?: object | undefined;
}

/** Takes a delivery through a consumer: once, again after failures, and in the end out of the way. */
export class MessageConsumer {
  private readonly policies = new WeakMap<ConsumerMetadata, ConsumerPolicy>();

  constructor(private readonly options: MessageConsumerOptions) {}

  /** The handler's result; nothing for a message that is skipped. Rejects to have the message delivered again. */
  async consume(consumer: ConsumerMetadata, delivery: Delivery, handle: Handle): Promise<unknown> {
    const policy = this.policyOf(consumer);
    this.options.events.groups.follow(delivery.client);
    if (!isWanted(consumer, delivery)) {
      this.tell({ consumer, policy, delivery, messageId: undefined }, 'ignored');
      return undefined;
    }
    let messageId: string | undefined;
    let event: object | undefined;
    let place: Place | undefined;
    try {
      messageId = messageIdOf(policy, delivery);
      event = eventOf(consumer, delivery);
      if (policy.sequence) place = placeOf(policy.sequence, payloadOf(delivery, event), delivery);
    } catch (error) {
      return this.giveUp({ consumer, policy, delivery, messageId }, error, 1);
    }
    const [id, current] = [messageId, { consumer, policy, delivery, messageId, event }];
    const guarded = async (): Promise<unknown> => {
      if (place) await this.advance(consumer, place);
      return handle(event);
    };
    const context = incomingContext(id, delivery.headers);
    const attempt = (): Promise<unknown> => withMessageContext(context, () => this.attempt(current, id, guarded));
    const { tracing } = this.options;
    return tracing ? tracing.consume(consumer.name, [{ messageId: id, topic: delivery.origin?.topic, context }], attempt) : attempt();
  }

  /**
   * What the message is to the consumer; `undefined` when it is not wanted.
   *
   * @throws OutboxError when it cannot be read
   */
  read(consumer: ConsumerMetadata, delivery: Delivery): { messageId: string; event: object | undefined } | undefined {
    this.options.events.groups.follow(delivery.client);
    if (!isWanted(consumer, delivery)) return undefined;
    return { messageId: messageIdOf(this.policyOf(consumer), delivery), event: eventOf(consumer, delivery) };
  }

  private async attempt(current: Case, messageId: string, handle: () => Promise<unknown>): Promise<unknown> {
    const { consumer, policy, delivery } = current;
    const { concurrentCopies, retry } = policy;
    let failedBefore = false;
    for (let round = 1; ; round++) {
      const run = (): Promise<unknown> =>
        this.options.runner
          .run(consumer.name, messageId, handle, { ...this.dedupeOf(current), failedBefore, origin: delivery.origin })
          .then((consumed) => (consumed.duplicate ? undefined : consumed.result));
      try {
        return await keepAlive(delivery, run);
      } catch (error) {
        if (error instanceof MessageStaleError) return await this.giveUp(current, error, undefined, policy.sequence?.onStale ?? 'skip');
        // The other copy may succeed yet, and Redis come back: that is no attempt of this one.
        const isWaiting = error instanceof MessageInProgressError || error instanceof RedisUnavailableError;
        if (isWaiting) {
          if (concurrentCopies === 'fail' && error instanceof MessageInProgressError) throw error;
          if (error instanceof RedisUnavailableError) this.tell(current, 'failed', { error, attempts: undefined });
        } else {
          failedBefore = true;
          const attempts = await this.countFailure(current, messageId, error);
          const isLast = !policy.isRetryable(error) || (attempts !== undefined && attempts >= retry.attempts);
          if (isLast) return await this.giveUp(current, error, attempts);
        }
        const mayGoOn = round < retry.attemptsPerDelivery;
        if (!mayGoOn || !(await pause(delivery, backoff(retry, round)))) throw transportError(error, consumer.name);
      }
    }
  }

  private dedupeOf({ consumer: { options }, policy, delivery, event }: Case): IdempotentRunOptions {
    if (options.dedupe !== 'state') return { dedupe: options.dedupe ?? 'table', concurrentCopies: policy.concurrentCopies };
    return { dedupe: 'state', isApplied: (manager) => options.isApplied(payloadOf(delivery, event), manager) };
  }

  /** Joins the transaction of the handler. @throws MessageStaleError */
  private async advance({ name }: ConsumerMetadata, place: Place): Promise<void> {
    const { ambient, store } = this.options;
    assertNotStale(place, await store.advanceSequence(ambient.dataSource, name, place.key, place.place));
  }

  /** Counted in a transaction of its own, since that of the handler is gone; not at all while the database is away. */
  private async countFailure(current: Case, messageId: string, error: unknown): Promise<number | undefined> {
    let attempts: number | undefined;
    try {
      const { ambient, store } = this.options;
      attempts = await store.countFailure(ambient.dataSource, current.consumer.name, messageId);
    } catch {
      // An outage brings no message closer to its end.
    }
    this.tell(current, 'failed', { error, attempts });
    return attempts;
  }

  private async giveUp(
    current: Case,
    error: unknown,
    attempts: number | undefined,
    how: OnExhausted = current.policy.onExhausted,
  ): Promise<undefined> {
    const { consumer, delivery } = current;
    // Whoever waits for an answer learns of the failure by that.
    if (delivery.isRequest) throw transportError(error, consumer.name);
    if (how === 'stop') {
      delivery.pause?.();
      this.tell(current, 'stopped', { error, attempts });
      throw transportError(error, consumer.name);
    }
    try {
      if (await keepAlive(delivery, () => this.dispose(current, error, attempts, how))) {
        const kind = how === 'dead-letter' ? 'dead-lettered' : error instanceof MessageStaleError ? 'stale' : 'skipped';
        this.tell(current, kind, { error, attempts });
      } else {
        this.tell(current, 'duplicate');
      }
    } catch (failure) {
      throw transportError(failure, consumer.name);
    }
    return undefined;
  }

  /**
   * Records the message as consumed and emits its dead letter in one transaction, so that neither can be without the
   * other. False when a copy of it has been handled meanwhile.
   */
  private dispose(current: Case, error: unknown, attempts: number | undefined, how: OnExhausted): Promise<boolean> {
    const { ambient, store, transactions } = this.options;
    const { consumer, policy, delivery, messageId } = current;
    const recordId = messageId ?? (delivery.origin && originId(delivery.origin));
    return transactions.run({}, async () => {
      const scope = ambient.current();
      if (!scope) throw new NoTransactionError('The dead letter has no transaction.');
      if (recordId !== undefined) {
        if (!(await store.consume(scope.queryRunner, consumer.name, recordId))) return false;
        await store.forgetFailures(scope.queryRunner, consumer.name, recordId);
      }
      if (how === 'dead-letter') {
        if (recordId !== undefined) await store.markDeadLettered(scope.queryRunner, consumer.name, recordId);
        scope.add([
          deadLetter(delivery, { consumer: consumer.name, error, attempts, messageId, topic: policy.deadLetterTopic }),
        ]);
      }
      return true;
    });
  }

  private tell(current: Case, kind: 'ignored' | 'duplicate'): void;
  private tell(
    current: Case,
    kind: FailureKind,
    failure: { error: unknown; attempts: number | undefined },
  ): void;
  private tell({ consumer, delivery, messageId }: Case, kind: never, failure?: object): void {
    this.options.events.emit({ kind, consumer: consumer.name, messageId, origin: delivery.origin, ...failure });
  }

  policyOf(consumer: ConsumerMetadata): ConsumerPolicy {
    const policy = this.policies.get(consumer) ?? consumerPolicy(consumer.options, this.options.defaults);
    this.policies.set(consumer, policy);
    return policy;
  }
}

function isWanted({ events }: ConsumerMetadata, { headers }: Delivery): boolean {
  const type = headers['event_type'];
  return !events || (typeof type === 'string' && events.has(type));
}

/** @throws PayloadUnreadableError, EventInvalidError */
function eventOf({ events }: ConsumerMetadata, { headers, value }: Delivery): object | undefined {
  const type = String(headers['event_type']);
  const event = events?.get(type);
  return event && readEvent(event, type, value);
}

/** What a handler is called with. */
function payloadOf({ context }: Delivery, event: object | undefined): unknown {
  return event ?? context.switchToRpc().getData();
}

function backoff({ backoff: first, maxBackoff }: ConsumerPolicy['retry'], round: number): number {
  return Math.min(maxBackoff, first * 2 ** (round - 1));
}
