import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** Milliseconds after which a message that has not arrived will not. */
const PATIENCE = 30_000;

/** What arrives at a consumer in another process, and when its handler was called for it. */
export class Arrivals {
  private readonly at = new Map<number, number>();

  private constructor(private readonly child: ChildProcess) {}

  static async open(brokers: readonly string[], topic: string): Promise<Arrivals> {
    const child = fork(fileURLToPath(new URL('./consumer-child.js', import.meta.url)), {
      env: { ...process.env, BENCH_CONSUMER: JSON.stringify({ brokers, topic }) },
      stdio: ['ignore', 2, 2, 'ipc'],
    });
    await once(child, 'message');
    return new Arrivals(child);
  }

  /** From each given time to the call of the handler for the message of that number, in ms. */
  async since(departures: ReadonlyMap<number, number>): Promise<number[]> {
    const deadline = performance.now() + PATIENCE;
    while ([...departures.keys()].some((n) => !this.at.has(n))) {
      if (performance.now() > deadline) throw new Error(`Messages have not arrived within ${PATIENCE} ms.`);
      await sleep(50);
      await this.look();
    }
    return [...departures].map(([n, left]) => (this.at.get(n) ?? Number.NaN) - left);
  }

  close(): void {
    this.child.disconnect();
  }

  private async look(): Promise<void> {
    const answer = once(this.child, 'message') as Promise<[[number, number][]]>;
    this.child.send('look');
    // A copy comes later than the first.
    for (const [n, at] of (await answer)[0]) if (!this.at.has(n)) this.at.set(n, at);
  }
}
