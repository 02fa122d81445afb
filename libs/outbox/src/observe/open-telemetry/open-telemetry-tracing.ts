import { context, type Context, isSpanContextValid, type Link, propagation, type Span, SpanKind, SpanStatusCode, trace, TraceFlags, type Tracer } from '@opentelemetry/api';
import type { OutboxTracing, PublishedMessage, TracedMessage } from '../../event/tracing';
import { SCOPE } from './open-telemetry-metrics';

export interface OpenTelemetryTracingOptions {
  /** Default: a tracer of the provider that is registered globally. */
  readonly tracer?: Tracer;
}

/** As many as the SDK keeps of one span by default. */
const MAX_LINKS = 128;

/**
 * Spans for publishing and consuming, in the trace in which a message was emitted:
 * `OutboxModule.forRoot({ …, tracing: openTelemetryTracing() })`. A batch has a span of its own, with links to its
 * messages. Traces that are not sampled cost nothing more.
 */
export function openTelemetryTracing({ tracer = trace.getTracer(SCOPE) }: OpenTelemetryTracingOptions = {}): OutboxTracing {
  return {
    published: (messages, durationMs) => tracePublished(tracer, messages, durationMs),
    consume: (consumer, messages, work) => {
      const [only] = messages;
      return only && messages.length === 1 ? consumeOne(tracer, consumer, only, work) : consumeBatch(tracer, consumer, messages, work);
    },
  };
}

function tracePublished(tracer: Tracer, messages: readonly PublishedMessage[], durationMs: number): void {
  const traced = messages.flatMap((message) => {
    const emitted = emittedIn(message.traceparent ?? undefined, message.headers['tracestate']);
    return emitted && isSampled(emitted) ? [{ message, emitted }] : [];
  });
  if (traced.length === 0) return;
  const [endTime, kind] = [Date.now(), SpanKind.PRODUCER];
  const startTime = endTime - durationMs;
  const batch = tracer.startSpan('outbox publish', {
    startTime,
    kind,
    root: true,
    links: linksTo(traced.map(({ emitted }) => emitted)),
    attributes: { 'messaging.operation.name': 'publish', 'messaging.operation.type': 'send', 'messaging.batch.message_count': messages.length },
  });
  for (const { message, emitted } of traced) {
    const attributes = {
      'messaging.operation.name': 'publish',
      'messaging.operation.type': 'send',
      'messaging.destination.name': message.topic,
      'messaging.message.id': message.messageId,
    };
    const span = tracer.startSpan(`publish ${message.topic}`, { startTime, kind, links: [{ context: batch.spanContext() }], attributes }, emitted);
    if (message.failure !== undefined) {
      span.setAttribute('error.type', message.failure);
      span.setStatus({ code: SpanStatusCode.ERROR, message: message.failure });
    }
    span.end(endTime);
  }
  batch.end(endTime);
}

function consumeOne<T>(tracer: Tracer, consumer: string, { messageId, topic, context: { traceparent, headers } }: TracedMessage, work: () => Promise<T>): Promise<T> {
  const attributes = {
    ...consumerAttributes(consumer, topic),
    'messaging.message.id': messageId,
  };
  // What instruments the Kafka client may have begun a span in the same trace already.
  const active = context.active();
  const emitted = emittedIn(traceparent, headers?.['tracestate']);
  const isInside = emitted && trace.getSpanContext(active)?.traceId === trace.getSpanContext(emitted)?.traceId;
  const parent = emitted && !isInside ? emitted : active;
  return tracer.startActiveSpan(`process ${topic ?? consumer}`, { kind: SpanKind.CONSUMER, attributes }, parent, (span) => ending(span, work));
}

function consumeBatch<T>(tracer: Tracer, consumer: string, messages: readonly TracedMessage[], work: () => Promise<T>): Promise<T> {
  const topic = messages[0]?.topic;
  const links = linksTo(messages.flatMap(({ context: { traceparent, headers } }) => emittedIn(traceparent, headers?.['tracestate']) ?? []));
  const attributes = { ...consumerAttributes(consumer, topic), 'messaging.batch.message_count': messages.length };
  return tracer.startActiveSpan(`process ${topic ?? consumer}`, { kind: SpanKind.CONSUMER, links, attributes }, (span) => ending(span, work));
}

function consumerAttributes(consumer: string, topic: string | undefined): Record<string, string> {
  return {
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'outbox.consumer': consumer,
    ...(topic === undefined ? {} : { 'messaging.destination.name': topic }),
  };
}

async function ending<T>(span: Span, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    span.recordException(error instanceof Error ? error : String(error));
    span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.message : String(error) });
    throw error;
  } finally {
    span.end();
  }
}

/** The context in which a message was emitted; `undefined` when it was in no trace. */
function emittedIn(traceparent: string | undefined, tracestate: string | undefined): Context | undefined {
  if (traceparent === undefined) return undefined;
  const extracted = propagation.extract(context.active(), { traceparent, ...(tracestate === undefined ? {} : { tracestate }) });
  const spanContext = trace.getSpanContext(extracted);
  return spanContext && isSpanContextValid(spanContext) && traceparent.includes(spanContext.traceId) ? extracted : undefined;
}

function isSampled(emitted: Context): boolean {
  return ((trace.getSpanContext(emitted)?.traceFlags ?? 0) & TraceFlags.SAMPLED) !== 0;
}

function linksTo(contexts: readonly Context[]): Link[] {
  return contexts.slice(0, MAX_LINKS).flatMap((each) => {
    const spanContext = trace.getSpanContext(each);
    return spanContext ? [{ context: spanContext }] : [];
  });
}
