import type { ConsumerEvent } from './consumer-events';
import { reasonOf } from './reason-of';

/** How a consumer is, by what it has done since the process started. */
export interface ConsumerStatus {
  readonly consumer: string;
  /** When it last handled a message, or recognised a repeat. */
  readonly lastSuccessAt: Date | null;
  /**
   * Since when it has done nothing but fail: three attempts or more, or a message that was given up. `null` when its
   * last message went well; a single attempt that fails is not worth a word, as the next one follows.
   */
  readonly failingSince: Date | null;
  readonly lastError: string | null;
  /** Messages that it has given up: sent to the dead-letter topic. */
  readonly deadLettered: number;
  /** Partitions that `onExhausted: 'stop'` has stopped, such as `orders[3]`, until something of them is handled. */
  readonly stopped: readonly string[];
}

/** So many failures in a row are no accident. */
const FAILING = 3;

interface Progress {
  lastSuccessAt: Date | null;
  deadLettered: number;
  /** Those since the last success. */
  failures: { readonly since: Date; count: number; hasGivenUp: boolean; lastError: string } | undefined;
  readonly stopped: Set<string>;
}

/** Follows what consumers do. */
export class ConsumerStatuses {
  private readonly byConsumer = new Map<string, Progress>();

  add(event: ConsumerEvent): void {
    const { consumer, kind, origin } = event;
    // What a consumer does not want, or what is older than the last, says nothing of its health.
    if (kind === 'ignored' || kind === 'stale') return;
    const progress = this.byConsumer.get(consumer) ?? { lastSuccessAt: null, deadLettered: 0, failures: undefined, stopped: new Set() };
    this.byConsumer.set(consumer, progress);
    const partition = origin && `${origin.topic}[${origin.partition}]`;
    if (kind === 'stopped') progress.stopped.add(partition ?? '');
    else if (kind !== 'failed' && partition !== undefined) progress.stopped.delete(partition);
    if (!('error' in event)) {
      Object.assign(progress, { lastSuccessAt: new Date(), failures: undefined });
      return;
    }
    progress.failures ??= { since: new Date(), count: 0, hasGivenUp: false, lastError: '' };
    progress.failures.lastError = reasonOf(event.error);
    if (kind === 'failed') progress.failures.count++;
    else progress.failures.hasGivenUp = true;
    if (kind === 'dead-lettered') progress.deadLettered++;
  }

  all(): readonly ConsumerStatus[] {
    return [...this.byConsumer].map(([consumer, { lastSuccessAt, deadLettered, failures, stopped }]) => {
      const isFailing = failures !== undefined && (failures.hasGivenUp || failures.count >= FAILING);
      return {
        consumer,
        lastSuccessAt,
        failingSince: isFailing ? failures.since : null,
        lastError: failures?.lastError ?? null,
        deadLettered,
        stopped: [...stopped],
      };
    });
  }
}
