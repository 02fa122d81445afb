import type { OutboxTracing } from '../event/tracing';
import type { Relay } from '../relay/relay';

/** Tells the tracing of each batch. */
export function traceRelay(relay: Relay, tracing: OutboxTracing): void {
  relay.on('published', ({ messages, outcomes, durationMs }) => {
    const published = messages.map(({ messageId, topic, traceparent, headers }, index) => {
      const outcome = outcomes[index];
      return { messageId, topic, traceparent, headers, failure: outcome && outcome.status !== 'acknowledged' ? outcome.failure.code : undefined };
    });
    tracing.published(published, durationMs);
  });
}
