import type { Registry } from 'prom-client';

/** One scrape, as Prometheus reads it. */
export class Scrape {
  private constructor(readonly text: string) {}

  static async of(registry: Registry): Promise<Scrape> {
    return new Scrape(await registry.metrics());
  }

  /** The sum of the series that have these labels; `undefined` when there is none. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
    const series = this.text.split('\n').filter((line) => {
      const parsed = /^([a-zA-Z_:]+)(?:\{(.*)\})? /.exec(line);
      return parsed?.[1] === name && Object.entries(labels).every(([label, value]) => parsed[2]?.includes(`${label}="${value}"`));
    });
    return series.length === 0 ? undefined : series.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  }

  /** Every metric that it tells of, with what a histogram is made of. */
  get names(): ReadonlySet<string> {
    const types = [...this.text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
    return new Set(types.flatMap(([, name = '', type]) => (type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name])));
  }
}
