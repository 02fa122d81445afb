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
  const known = Reflect.get(registry, COLLECTION) as Collection | undefined;
  // After `registry.clear()`, which tests like, all is to be registered again.
  const collection = known?.isRegistered ? known : new Collection(registry);
  collection.add(Object.values(INSTRUMENTS));
  Object.defineProperty(registry, COLLECTION, { value: collection, configurable: true });
  return collection;
}

/** What has been registered, kept by the registry: it may outlive this module, which tests and hot reloads load again. */
const COLLECTION = Symbol.for('nestjs-transactional-outbox.prometheus');

type Metric = Counter | Gauge | Histogram;

class Collection implements OutboxMetrics {
  /** By the names of the instruments: another copy of this module has others. */
  private readonly metrics = new Map<string, { readonly metric: Metric; readonly registeredAs: string }>();
  private readonly readers = new Set<() => Promise<readonly Reading[]>>();
  /** One look serves all that are asked for together. */
  private looking: Promise<ReadonlyMap<string, readonly Reading[]>> | undefined;

  constructor(private readonly registry: Registry) {}

  get isRegistered(): boolean {
    return [...this.metrics.values()].every(({ metric, registeredAs }) => this.registry.getSingleMetric(registeredAs) === metric);
  }

  add(instruments: readonly Instrument[]): void {
    const missing = instruments.filter(({ name }) => !this.metrics.has(name));
    // First of all, so that nothing is registered when one of them cannot be.
    const foreign = missing.map(prometheusName).find((name) => this.registry.getSingleMetric(name));
    if (foreign) throw new OutboxOptionsError(`metrics: the registry has a metric ${foreign} already, which is not the outbox's.`);
    for (const instrument of missing) this.metrics.set(instrument.name, { metric: this.create(instrument), registeredAs: prometheusName(instrument) });
  }

  record({ name }: Instrument, labels: Labels, value: number): void {
    const metric = this.metrics.get(name)?.metric;
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
    const common = { name, help, labelNames: [...labels], registers: [this.registry] };
    if (kind === 'counter') return new Counter(common);
    if (kind === 'histogram') return new Histogram({ ...common, ...(buckets ? { buckets: [...buckets] } : {}) });
    const collect = (): Promise<void> => this.fill(instrument);
    return kind === 'total' ? new Counter({ ...common, collect }) : new Gauge({ ...common, collect });
  }

  private async fill({ name }: Instrument): Promise<void> {
    const readings = (await this.look()).get(name) ?? [];
    const metric = this.metrics.get(name)?.metric;
    metric?.reset();
    for (const { labels, value } of readings) {
      if (metric instanceof Gauge) metric.set({ ...labels }, value);
      else if (metric instanceof Counter) metric.inc({ ...labels }, value);
    }
  }

  private look(): Promise<ReadonlyMap<string, readonly Reading[]>> {
    this.looking ??= this.readAll().finally(() => {
      this.looking = undefined;
    });
    return this.looking;
  }

  private async readAll(): Promise<ReadonlyMap<string, readonly Reading[]>> {
    const all = new Map<string, Reading[]>();
    for (const reading of (await Promise.all([...this.readers].map((read) => read()))).flat()) {
      const { name } = reading.instrument;
      const same = all.get(name);
      if (same) same.push(reading);
      else all.set(name, [reading]);
    }
    return all;
  }
}
