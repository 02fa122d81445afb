export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN;
}

/** The median of each figure over several runs, to three decimal places. */
export function medians<K extends string>(runs: readonly Readonly<Record<K, number>>[]): Record<K, number> {
  const names = Object.keys(runs[0] ?? {}) as K[];
  return round(Object.fromEntries(names.map((name) => [name, median(runs.map((run) => run[name]))])) as Record<K, number>);
}

export function round<K extends string>(figures: Readonly<Record<K, number>>): Record<K, number> {
  return Object.fromEntries(
    Object.entries<number>(figures).map(([name, value]) => [name, Math.round(value * 1000) / 1000]),
  ) as Record<K, number>;
}

/** How many in a second. */
export function rate(count: number, milliseconds: number): number {
  return (count * 1000) / milliseconds;
}
