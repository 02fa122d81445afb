import type { MessageContext } from './message-context';

/** A message at a consumer, as a trace shows it. */
export interface TracedMessage {
  readonly messageId: string;
  /** `undefined` on a transport other than Kafka. */
  readonly topic: string | undefined;
  readonly context: MessageContext;
}

/** Where traces go: `openTelemetryTracing()`. */
export interface OutboxTracing {
  /** Called when a batch was answered for, or not in time; `durationMs` ago it was handed to the broker. */
  published(messages: readonly PublishedMessage[], durationMs: number): void;
  /** Runs the handling of a message, or of several in one transaction, as a span of the consumer. */
  consume<T>(consumer: string, messages: readonly TracedMessage[], work: () => Promise<T>): Promise<T>;
}

export interface PublishedMessage {
  readonly messageId: string;
  readonly topic: string;
  readonly traceparent: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Why the broker has not acknowledged it, if so: a stable word. */
  readonly failure: string | undefined;
}
