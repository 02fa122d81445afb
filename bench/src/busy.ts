import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** Keeps every core busy while the work goes on, with nothing that touches disk, database or network. */
export async function withBusyCores<T>(work: () => Promise<T>): Promise<T> {
  const loops = Array.from({ length: availableParallelism() }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  try {
    return await work();
  } finally {
    for (const loop of loops) loop.kill('SIGKILL');
  }
}
