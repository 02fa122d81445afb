import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Begins work so many times a second as long as it shall go on, whatever the earlier pieces of it are doing, and resolves
 * when all is done. Where it shall not be more than so many pieces at once it leaves out what it has no time for. Resolves
 * to the number of pieces; rejects with the first failure.
 */
export async function atSteadyRate(
  perSecond: number,
  goesOn: (n: number) => boolean,
  work: (n: number) => Promise<void>,
  atOnce = Number.POSITIVE_INFINITY,
): Promise<number> {
  let due = performance.now();
  const running = new Set<Promise<void>>();
  const failures: unknown[] = [];
  let n = 0;
  for (; goesOn(n) && failures.length === 0; n++) {
    if (running.size >= atOnce) {
      await Promise.race(running);
      due = Math.max(due, performance.now());
    }
    const wait = due - performance.now();
    if (wait > 0) await sleep(wait);
    due += 1000 / perSecond;
    const piece = work(n)
      .catch((error: unknown) => void failures.push(error))
      .finally(() => running.delete(piece));
    running.add(piece);
  }
  await Promise.all(running);
  if (failures.length > 0) throw failures[0];
  return n;
}
