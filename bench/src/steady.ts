import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Begins work so many times a second for so long, whatever the earlier pieces of it are doing, and resolves when all is
 * done. Rejects with the first failure.
 */
export async function atSteadyRate(perSecond: number, seconds: number, work: (n: number) => Promise<void>): Promise<number> {
  const count = Math.round(perSecond * seconds);
  const begun = performance.now();
  const all: Promise<void>[] = [];
  for (let n = 0; n < count; n++) {
    const wait = begun + (n * 1000) / perSecond - performance.now();
    if (wait > 0) await sleep(wait);
    all.push(work(n));
  }
  await Promise.all(all);
  return count;
}
