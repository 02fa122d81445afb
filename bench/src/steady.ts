import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Begins work so many times a second as long as it shall go on, whatever the earlier pieces of it are doing, and resolves
 * when all is done. Rejects with the first failure.
 */
export async function atSteadyRate(perSecond: number, goesOn: (n: number) => boolean, work: (n: number) => Promise<void>): Promise<void> {
  const begun = performance.now();
  const running = new Set<Promise<void>>();
  const failures: unknown[] = [];
  for (let n = 0; goesOn(n) && failures.length === 0; n++) {
    const wait = begun + (n * 1000) / perSecond - performance.now();
    if (wait > 0) await sleep(wait);
    const piece = work(n).catch((error: unknown) => void failures.push(error));
    running.add(piece);
    void piece.finally(() => running.delete(piece));
  }
  await Promise.all(running);
  if (failures.length > 0) throw failures[0];
}
