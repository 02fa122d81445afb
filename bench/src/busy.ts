import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';

/** Keeps every core busy while the work goes on, with nothing that touches disk, database or network. */
export async function withBusyCores<T>(work: () => Promise<T>): Promise<T> {
  // Threads, since they end with the process, however that ends.
  const loops = Array.from({ length: availableParallelism() }, () => new Worker('for (;;);', { eval: true }));
  try {
    return await work();
  } finally {
    await Promise.all(loops.map((loop) => loop.terminate()));
  }
}
