import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { context, propagation, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { IdempotentConsumer, Outbox, TransactionRunner } from 'nestjs-transactional-outbox';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { openTelemetryMetrics, openTelemetryTracing } from 'nestjs-transactional-outbox/opentelemetry';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';

@Controller()
class Shelf {
  constructor(private readonly outbox: Outbox) {}

  @EventPattern('orders')
  @IdempotentConsumer('shelf')
  put(@Payload() _value: unknown): Promise<void> {
    this.outbox.emitRaw({ topic: 'shelved', type: 'shelved', payload: '{}' });
    return Promise.resolve();
  }
}

describe('OpenTelemetry', () => {
  let app: TestApp;
  const broker = new InMemoryBroker();
  const spans = new InMemorySpanExporter();
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000, exportTimeoutMillis: 10_000 });
  const meters = new MeterProvider({ readers: [reader] });

  beforeAll(async () => {
    provider.register({ propagator: new W3CTraceContextPropagator() });
    const outbox = { publisher: broker.publisher(), relay: {}, metrics: openTelemetryMetrics({ meter: meters.getMeter('test') }), tracing: openTelemetryTracing() };
    app = await startApp('sqlite', { controllers: [Shelf], outbox });
    app.app.connectMicroservice({ strategy: broker.server({ groupId: 'shelf' }) });
    await app.app.startAllMicroservices();
  });
  afterAll(async () => {
    await app.close();
    await provider.shutdown();
    await meters.shutdown();
    trace.disable();
    context.disable();
    propagation.disable();
  });

  it('has emitting, publishing, consuming and what follows in one trace, and a batch with links', async () => {
    await trace.getTracer('test').startActiveSpan('place', async (span) => {
      await app.app.get(TransactionRunner).run(async () => app.app.get(Outbox).emitRaw({ topic: 'orders', type: 'made', payload: '{}' }));
      span.end();
    });
    await expect.poll(() => spans.getFinishedSpans().map(({ name }) => name), { timeout: 10_000 }).toContain('publish shelved');
    const all = spans.getFinishedSpans();
    const find = (name: string): (typeof all)[number] => all.find((span) => span.name === name)!;
    const [place, publish, consume, follow] = ['place', 'publish orders', 'process orders', 'publish shelved'].map(find);
    expect(publish?.parentSpanContext?.spanId).toBe(place?.spanContext().spanId);
    expect(consume?.parentSpanContext?.spanId).toBe(place?.spanContext().spanId);
    expect(follow?.parentSpanContext?.spanId).toBe(consume?.spanContext().spanId);
    expect(new Set([place, publish, consume, follow].map((span) => span?.spanContext().traceId)).size).toBe(1);
    const batch = find('outbox publish');
    expect(batch.links.map((link) => link.context.spanId)).toEqual([place?.spanContext().spanId]);
    expect(publish?.links.map((link) => link.context.spanId)).toEqual([batch.spanContext().spanId]);
  });

  it('has no span for what was emitted in no trace', async () => {
    spans.reset();
    await app.app.get(TransactionRunner).run(async () => app.app.get(Outbox).emitRaw({ topic: 'elsewhere', type: 'made', payload: '{}' }));
    await expect.poll(() => broker.records('elsewhere').length).toBe(1);
    expect(spans.getFinishedSpans()).toEqual([]);
  });

  it('has the same figures as metrics', async () => {
    await expect.poll(async () => {
      await reader.forceFlush();
      const metrics = exporter.getMetrics().at(-1)?.scopeMetrics.flatMap((scope) => scope.metrics) ?? [];
      const value = (name: string, topic: string): unknown =>
        metrics.find(({ descriptor }) => descriptor.name === name)?.dataPoints.find(({ attributes }) => attributes['topic'] === topic)?.value;
      return [value('outbox.messages.emitted', 'orders'), value('outbox.messages.published', 'shelved'), value('outbox.messages.pending', 'orders') ?? 0];
    }, { timeout: 10_000 }).toEqual([1, 1, 0]);
    expect(exporter.getMetrics().at(-1)?.scopeMetrics.flatMap((scope) => scope.metrics).map(({ descriptor }) => descriptor.name)).toContain('outbox.relay.running');
  });
});
