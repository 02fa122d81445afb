import { Counter, Gauge, Histogram, register, type Registry } from 'prom-client';
import { OutboxOptionsError } from '../../errors';
import { type Instrument, INSTRUMENTS, type Labels, prometheusName } from '../metrics/instruments';
import type { OutboxMetrics, Reading } from '../metrics/outbox-metrics';

export interface PrometheusMetricsOptions {
  /** Where the metrics are registered. Default: prom-client's own registry. */
  readonly registry?: Registry;
}

/**
 * Figures for Prometheus, through prom-client: `OutboxModule.forRoot({ …, metrics: prometheusMetrics() })`. They are
 * registered once for each registry, however many modules use them; series of several data sources are told apart by
 * the label `data_source`.
 *
 * @throws OutboxOptionsError when the registry has another metric of one of the names
 */
export function prometheusMetrics({ registry = register }: PrometheusMetricsOptions = {}): OutboxMetrics {
  let known = collections.get(registry);
  // After `registry.clear()`, which tests like, all is to be registered again.
  if (!known?.isRegistered) collections.set(registry, (known = new Collection(registry)));
  return known;
}

/** What has been registered, by registry. */
const collections = new WeakMap<Registry, Collection>();

type Metric = Counter | Gauge | Histogram;

class Collection implements OutboxMetrics {
  private readonly metrics = new Map<Instrument, Metric>();
  private readonly readers = new Set<() => Promise<readonly Reading[]>>();
  /** One look serves all that are asked for together. */
  private looking: Promise<ReadonlyMap<Instrument, readonly Reading[]>> | undefined;

  constructor(private readonly registry: Registry) {
    for (const instrument of Object.values(INSTRUMENTS)) this.metrics.set(instrument, this.create(instrument));
  }

  get isRegistered(): boolean {
    return [...this.metrics].every(([instrument, metric]) => this.registry.getSingleMetric(prometheusName(instrument)) === metric);
  }

  record(instrument: Instrument, labels: Labels, value: number): void {
    const metric = this.metrics.get(instrument);
    if (metric instanceof Histogram) metric.observe({ ...labels }, value);
    else metric?.inc({ ...labels }, value);
  }

  observe(read: () => Promise<readonly Reading[]>): () => void {
    this.readers.add(read);
    return () => this.readers.delete(read);
  }

  private create(instrument: Instrument): Metric {
    const { help, labels, buckets, kind } = instrument;
    const name = prometheusName(instrument);
    const known = this.registry.getSingleMetric(name);
    const common = { name, help, labelNames: [...labels], registers: [this.registry] };
    if (known) throw new OutboxOptionsError(`metrics: the registry has a metric ${name} already, which is not the outbox's.`);
    if (kind === 'counter') return new Counter(common);
    if (kind === 'histogram') return new Histogram({ ...common, ...(buckets ? { buckets: [...buckets] } : {}) });
    const collect = (): Promise<void> => this.fill(instrument);
    return kind === 'total' ? new Counter({ ...common, collect }) : new Gauge({ ...common, collect });
  }

  private async fill(instrument: Instrument): Promise<void> {
    const readings = (await this.look()).get(instrument) ?? [];
    const metric = this.metrics.get(instrument);
    metric?.reset();
    for (const { labels, value } of readings) {
      if (metric instanceof Gauge) metric.set({ ...labels }, value);
      else if (metric instanceof Counter) metric.inc({ ...labels }, value);
    }
  }

  private look(): Promise<ReadonlyMap<Instrument, readonly Reading[]>> {
    this.looking ??= this.readAll().finally(() => {
      this.looking = undefined;
    });
    return this.looking;
  }

  private async readAll(): Promise<ReadonlyMap<Instrument, readonly Reading[]>> {
    const all = new Map<Instrument, Reading[]>();
    for (const reading of (await Promise.all([...this.readers].map((read) => read()))).flat()) {
      const same = all.get(reading.instrument);
      if (same) same.push(reading);
      else all.set(reading.instrument, [reading]);
    }
    return all;
  }
}
