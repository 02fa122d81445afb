import type { Registry } from 'prom-client';
import { childConfig, type ParentMessage, tell } from './child-config.js';
import type { Series } from './history.js';

/** Counters that are told whenever they may have moved, so that a process that is killed has told nearly all. */
const COUNTERS = ['emitted', 'published', 'refused', 'retried', 'parked', 'unanswered'].map((name) => `outbox_messages_${name}_total`);
const COUNTED = [...COUNTERS, 'outbox_lanes_lost_messages_total', 'outbox_consumer_messages_total', 'outbox_consumer_failures_total'];

/** Tells the ground what this process measures, and all of it when the ground asks. */
export class FiguresTeller {
  private readonly process = childConfig().name;

  constructor(private readonly registry: Registry) {
    process.on('message', (message: ParentMessage) => {
      if (message.type === 'tellFigures') void this.tellAll();
    });
  }

  /** Without a look at the tables. */
  async count(): Promise<void> {
    const metrics = await Promise.all(COUNTED.map((name) => this.registry.getSingleMetric(name)?.get()));
    const series = metrics.flatMap((metric) => (metric?.values ?? []).map(({ labels, value }) => toSeries(metric?.name ?? '', labels, value)));
    tell({ type: 'figures', process: this.process, isWhole: false, series });
  }

  private async tellAll(): Promise<void> {
    const metrics = await this.registry.getMetricsAsJSON();
    const series = metrics.flatMap(({ name, values }) => values.map(({ labels, value }) => toSeries(name, labels, value)));
    tell({ type: 'figures', process: this.process, isWhole: true, series });
  }
}

function toSeries(name: string, labels: Partial<Record<string, string | number>>, value: number): Series {
  return { name, labels: Object.fromEntries(Object.entries(labels).map(([label, text]) => [label, String(text)])), value };
}
