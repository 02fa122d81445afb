import type { ConsumerEvent, ConsumerEvents } from '../../consume/consumer-events';
import { groupBy } from '../../event/group-by';
import type { LoggedMessage, OutboxMessage } from '../../event/message';
import { messageBytes } from '../../event/to-message';
import type { Relay } from '../../relay/relay';
import { isUnanswered } from '../../relay/settlement';
import type { DatabaseClock } from './database-clock';
import { type Instrument, INSTRUMENTS, type Labels } from './instruments';
import type { OutboxMetrics } from './outbox-metrics';

const OUTCOMES = ['handled', 'duplicate', 'ignored', 'stale', 'skipped', 'dead_lettered', 'stopped'] as const;

type Outcome = (typeof OUTCOMES)[number];

function toOutcome(kind: Exclude<ConsumerEvent['kind'], 'failed'>): Outcome {
  return kind === 'dead-lettered' ? 'dead_lettered' : kind;
}

export interface RecorderOptions {
  readonly metrics: OutboxMetrics;
  readonly dataSource: string;
  readonly maxMessageBytes: number;
  readonly clock: DatabaseClock;
}

/** Counts what happens, at the moment when it is certain. */
export class Recorder {
  private readonly consumers = new Set<string>();

  constructor(private readonly options: RecorderOptions) {}

  /** Called with the messages of a transaction that has committed. */
  emitted(messages: readonly OutboxMessage[]): void {
    this.byTopic(INSTRUMENTS.emitted, messages);
    const limit = this.options.maxMessageBytes / 2;
    this.byTopic(INSTRUMENTS.large, messages.filter((message) => messageBytes(message) > limit));
  }

  listen(relay: Relay, consumers: ConsumerEvents): void {
    this.record(INSTRUMENTS.lanesLost, 0);
    this.record(INSTRUMENTS.lanesLostMessages, 0);
    relay.on('claimed', ({ durationMs }) => this.record(INSTRUMENTS.claim, durationMs / 1000));
    relay.on('published', ({ messages, outcomes, durationMs }) => {
      this.record(INSTRUMENTS.publish, durationMs / 1000);
      this.record(INSTRUMENTS.batch, messages.length);
      this.byTopic(INSTRUMENTS.unanswered, messages.filter((_, index) => outcomes[index] && isUnanswered(outcomes[index])));
    });
    relay.on('settled', ({ sent, durationMs }) => {
      this.record(INSTRUMENTS.settle, durationMs / 1000);
      this.byTopic(INSTRUMENTS.published, sent);
      this.delivered(sent);
    });
    relay.on('held', ({ message, reason }) => {
      if (reason === 'topic') return this.byTopic(INSTRUMENTS.deferred, [message]);
      this.byTopic(INSTRUMENTS.refused, [message]);
      this.byTopic(INSTRUMENTS.retried, [message]);
    });
    relay.on('parked', ({ message }) => {
      this.byTopic(INSTRUMENTS.refused, [message]);
      this.byTopic(INSTRUMENTS.parked, [message]);
    });
    relay.on('laneLost', ({ lanes, messages }) => {
      this.record(INSTRUMENTS.lanesLost, lanes.length);
      this.record(INSTRUMENTS.lanesLostMessages, messages);
    });
    relay.on('failed', ({ stage }) => this.record(INSTRUMENTS.relayFailures, 1, { stage }));
    consumers.subscribe((event) => this.consumed(event));
  }

  private delivered(sent: readonly LoggedMessage[]): void {
    const now = this.options.clock.now();
    for (const { topic, createdAt } of sent) {
      this.record(INSTRUMENTS.delivery, Math.max(0, now - createdAt) / 1000, { topic });
    }
  }

  private consumed({ consumer, kind }: ConsumerEvent): void {
    if (!this.consumers.has(consumer)) this.begin(consumer);
    if (kind === 'failed') this.record(INSTRUMENTS.consumerFailures, 1, { consumer });
    else this.record(INSTRUMENTS.consumed, 1, { consumer, outcome: toOutcome(kind) });
  }

  /** A series that begins at 0 shows its first increase, which alerts wait for. */
  private begin(consumer: string): void {
    this.consumers.add(consumer);
    this.record(INSTRUMENTS.consumerFailures, 0, { consumer });
    for (const outcome of OUTCOMES) this.record(INSTRUMENTS.consumed, 0, { consumer, outcome });
  }

  private byTopic(instrument: Instrument, messages: readonly OutboxMessage[]): void {
    for (const [topic, some] of groupBy(messages, (message) => message.topic)) this.record(instrument, some.length, { topic });
  }

  private record(instrument: Instrument, value: number, labels: Labels = {}): void {
    this.options.metrics.record(instrument, { data_source: this.options.dataSource, ...labels }, value);
  }
}
