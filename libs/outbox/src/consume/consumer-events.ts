import { Logger } from '@nestjs/common';
import { currentMessageContext } from '../event/message-context';
import { type ConsumerStatus, ConsumerStatuses } from './consumer-status';
import type { MessageOrigin } from './delivery';
import { KafkaGroups } from './kafka-groups';
import { namedReasonOf } from './reason-of';

/** What can become of a message that is not handled. */
export type FailureKind = 'failed' | 'dead-lettered' | 'skipped' | 'stopped' | 'stale';

/** What happened to a message at a consumer. */
export type ConsumerEvent = {
  readonly consumer: string;
  /** `undefined` for a message without a usable id. */
  readonly messageId: string | undefined;
  /** `undefined` on a transport other than Kafka. */
  readonly origin: MessageOrigin | undefined;
} & (
  | {
      /**
       * `handled`: the handler ran and all was committed. `duplicate`: it had been handled before and was skipped.
       * `ignored`: it is of a type that the consumer does not want.
       */
      readonly kind: 'handled' | 'duplicate' | 'ignored';
    }
  | {
      /**
       * `failed`: one attempt failed. `dead-lettered`, `skipped`, `stopped`: what became of the message when it had
       * failed for good. `stale`: it was older than the last of its key, and was skipped.
       */
      readonly kind: FailureKind;
      readonly error: unknown;
      /** Attempts so far, restarts included; `undefined` when it was not counted: the database or Redis was not there. */
      readonly attempts: number | undefined;
    }
);

/** How often each thing has happened at a consumer since the process started. */
export type ConsumerCounts = Readonly<Record<ConsumerEvent['kind'], number>>;

export type ConsumerListener = (event: ConsumerEvent) => void;

const NONE: ConsumerCounts = {
  handled: 0,
  duplicate: 0,
  ignored: 0,
  failed: 0,
  'dead-lettered': 0,
  skipped: 0,
  stopped: 0,
  stale: 0,
};

/** Tells what happens at the consumers of one data source, and counts it. */
export class ConsumerEvents {
  private readonly logger = new Logger('OutboxConsumer');
  private readonly listeners = new Set<ConsumerListener>();
  private readonly status = new ConsumerStatuses();
  /** @internal */
  readonly groups = new KafkaGroups();
  private readonly byConsumer = new Map<string, Record<ConsumerEvent['kind'], number>>();

  /** Calls the listener at each event, outside of any transaction, until the returned function is called. */
  subscribe(listener: ConsumerListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** How each consumer is that has seen a message since the process started. */
  statuses(): readonly ConsumerStatus[] {
    return this.status.all();
  }

  counts(consumer: string): ConsumerCounts {
    return { ...(this.byConsumer.get(consumer) ?? NONE) };
  }

  /** @internal */
  emit(event: ConsumerEvent): void {
    const counts = this.byConsumer.get(event.consumer) ?? { ...NONE };
    counts[event.kind]++;
    this.byConsumer.set(event.consumer, counts);
    this.status.add(event);
    this.log(event);
    for (const listener of this.listeners) {
      try {
        listener(event);
      } catch (error) {
        // What a listener does must not decide what becomes of a message.
        this.logger.error('A consumer listener failed.', error instanceof Error ? error.stack : error);
      }
    }
  }

  private log(event: ConsumerEvent): void {
    const { consumer, messageId, origin, kind } = event;
    if (kind === 'handled' || kind === 'ignored') return;
    const place = origin ? ` at ${origin.topic}[${origin.partition}]@${origin.offset}` : '';
    const text = `${consumer}: message ${messageId ?? 'without id'}${place}${trail()} ${kind}`;
    if (!('error' in event) || kind === 'stale') this.logger.debug(text);
    else if (kind === 'failed') this.logger.warn(`${text} (attempt ${event.attempts ?? 'not counted'}): ${namedReasonOf(event.error)}`);
    else this.logger.error(`${text} after ${event.attempts ?? 'uncounted'} attempts: ${namedReasonOf(event.error)}`);
  }
}

/** What connects a line with those of others who had to do with the message. */
function trail(): string {
  const { correlationId, traceparent } = currentMessageContext();
  const parts = [correlationId && `correlation ${correlationId}`, traceparent && `trace ${traceparent}`].filter(Boolean);
  return parts.length > 0 ? ` (${parts.join(', ')})` : '';
}
