import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  /** Milliseconds after which waiting is given up. */
  readonly limit?: number;
  /** Milliseconds between two looks. */
  readonly pause?: number;
}

/** Looks again and again until the condition is met. Rejects when it takes too long, saying what was waited for. */
export async function waitUntil(
  what: string | (() => string),
  condition: () => boolean | Promise<boolean>,
  { limit = 10_000, pause = 5 }: WaitOptions = {},
): Promise<void> {
  const end = Date.now() + limit;
  while (!(await condition())) {
    if (Date.now() > end) {
      throw new Error(`Waited ${limit / 1000} s in vain until ${typeof what === 'string' ? what : what()}.`);
    }
    await sleep(pause);
  }
}
