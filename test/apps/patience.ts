/** For `expect.poll` on a busy machine. */
export const PATIENT = { timeout: 40_000, interval: 20 } as const;
