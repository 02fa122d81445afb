import { type Counter, type Histogram, type Meter, metrics, type Observable } from '@opentelemetry/api';
import { type Instrument, INSTRUMENTS } from '../metrics/instruments';
import type { OutboxMetrics, Reading } from '../metrics/outbox-metrics';

/** What the meter and the tracer are known by. */
export const SCOPE = 'nestjs-transactional-outbox';

export interface OpenTelemetryMetricsOptions {
  /** Default: a meter of the provider that is registered globally when the module starts. */
  readonly meter?: Meter;
}

/**
 * The same figures for OpenTelemetry: `OutboxModule.forRoot({ …, metrics: openTelemetryMetrics() })`. Register the SDK
 * before the app is made, as for all instrumentation; without one nothing is measured.
 */
export function openTelemetryMetrics({ meter }: OpenTelemetryMetricsOptions = {}): OutboxMetrics {
  let instruments: Instruments | undefined;
  const made = (): Instruments => (instruments ??= new Instruments(meter ?? metrics.getMeter(SCOPE)));
  return {
    record: (instrument, labels, value) => made().record(instrument, labels, value),
    observe: (read) => made().observe(read),
  };
}

class Instruments implements OutboxMetrics {
  private readonly counters = new Map<Instrument, Counter>();
  private readonly histograms = new Map<Instrument, Histogram>();
  private readonly observables = new Map<Instrument, Observable>();

  constructor(private readonly meter: Meter) {
    for (const instrument of Object.values<Instrument>(INSTRUMENTS)) {
      const { name, help: description, unit, buckets } = instrument;
      const options = { description, unit, ...(buckets ? { advice: { explicitBucketBoundaries: [...buckets] } } : {}) };
      if (instrument.kind === 'counter') this.counters.set(instrument, meter.createCounter(name, options));
      else if (instrument.kind === 'histogram') this.histograms.set(instrument, meter.createHistogram(name, options));
      else if (instrument.kind === 'total') this.observables.set(instrument, meter.createObservableCounter(name, options));
      else this.observables.set(instrument, meter.createObservableGauge(name, options));
    }
  }

  record(instrument: Instrument, labels: Reading['labels'], value: number): void {
    this.counters.get(instrument)?.add(value, labels);
    this.histograms.get(instrument)?.record(value, labels);
  }

  observe(read: () => Promise<readonly Reading[]>): () => void {
    const observables = [...this.observables.values()];
    const callback: Parameters<Meter['addBatchObservableCallback']>[0] = async (result) => {
      for (const { instrument, labels, value } of await read()) {
        const observable = this.observables.get(instrument);
        if (observable) result.observe(observable, value, labels);
      }
    };
    this.meter.addBatchObservableCallback(callback, observables);
    return () => this.meter.removeBatchObservableCallback(callback, observables);
  }
}
