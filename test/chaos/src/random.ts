/** Numbers that a seed decides (mulberry32), so that a run can be drawn again. */
export class Random {
  constructor(private state: number) {}

  /** From 0 to below 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Whole numbers from `least` to `most`. */
  int(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.int(0, items.length - 1)];
    if (item === undefined) throw new Error('there is nothing to pick from');
    return item;
  }

  /** One of the names, each as often as its weight says. */
  weighted<N extends string>(weights: Readonly<Record<N, number>>): N {
    const entries = Object.entries(weights) as [N, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    return this.pick(entries)[0];
  }
}

/** A seed of its own for each part of a run. */
export function seedOf(seed: number, part: string): number {
  let h = seed | 0;
  for (const char of part) h = Math.imul(h ^ (char.codePointAt(0) ?? 0), 0x9e3779b1) ^ (h >>> 15);
  return h;
}
