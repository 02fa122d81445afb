import type { ConsumerEvent } from './consumer-events';
import { reasonOf } from './reason-of';

/** How a consumer is, by what it has done since the process started. */
export interface ConsumerStatus {
  readonly consumer: string;
  /** When it last handled a message, or recognised a repeat. */
  readonly lastSuccessAt: Date | null;
  /** Since when it has done nothing but fail; `null` when its last message went well. */
  readonly failingSince: Date | null;
  readonly lastError: string | null;
  /** Messages that it has given up: sent to the dead-letter topic. */
  readonly deadLettered: number;
}

/** Follows what consumers do. */
export class ConsumerStatuses {
  private readonly byConsumer = new Map<string, ConsumerStatus>();

  add(event: ConsumerEvent): void {
    const { consumer, kind } = event;
    const before = this.byConsumer.get(consumer) ?? { consumer, lastSuccessAt: null, failingSince: null, lastError: null, deadLettered: 0 };
    // What a consumer does not want, or what is older than the last, says nothing of its health.
    if (kind === 'ignored' || kind === 'stale') return;
    if (!('error' in event)) {
      this.byConsumer.set(consumer, { ...before, lastSuccessAt: new Date(), failingSince: null, lastError: null });
      return;
    }
    this.byConsumer.set(consumer, {
      ...before,
      failingSince: before.failingSince ?? new Date(),
      lastError: reasonOf(event.error),
      deadLettered: before.deadLettered + (kind === 'dead-lettered' ? 1 : 0),
    });
  }

  all(): readonly ConsumerStatus[] {
    return [...this.byConsumer.values()];
  }
}
