import { setTimeout } from 'node:timers/promises';

/** Waits until the condition holds, and says what did not when it never does. */
export async function until(what: string, condition: () => boolean | Promise<boolean>, patience = 40_000): Promise<void> {
  const end = Date.now() + patience;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`This has not come about: ${what}.`);
    await setTimeout(25);
  }
}
