import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A process that will serve duties once it has said that it is loaded. */
export function forkMember(): ChildProcess {
  return fork(fileURLToPath(new URL('./run.mjs', import.meta.url)), { stdio: 'inherit' });
}

/** Waits until the process says: `loaded`, `serving`, or, of each handler that is entered, `working`. */
export async function said(member: ChildProcess, word: string): Promise<void> {
  for (;;) {
    const [message] = (await once(member, 'message')) as [unknown];
    if (message === word) return;
  }
}
