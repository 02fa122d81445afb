import { expect } from 'vitest';

/** As `expect.poll`, with the patience that a busy machine asks for. */
export const eventually = <T>(look: () => T) => expect.poll(look, { timeout: 40_000, interval: 20 });
