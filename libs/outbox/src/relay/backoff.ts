export interface BackoffOptions {
  readonly retryDelay: number;
  readonly maxRetryDelay: number;
}

/** Milliseconds to wait after the given number of failures: doubling, capped, and spread so that nobody marches in step. */
export function backoff(failures: number, { retryDelay, maxRetryDelay }: BackoffOptions): number {
  const delay = Math.min(retryDelay * 2 ** Math.max(0, failures - 1), maxRetryDelay);
  return Math.round(delay * (0.75 + Math.random() * 0.25));
}
