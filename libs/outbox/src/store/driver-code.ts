/** The code that the driver gave the error. */
export function driverCode(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}

const WAITED_IN_VAIN: ReadonlySet<unknown> = new Set(['ER_LOCK_WAIT_TIMEOUT', 'ER_LOCK_DEADLOCK']);

/** Whether MySQL or MariaDB did not give a lock. */
export function waitedInVain(error: unknown): boolean {
  return WAITED_IN_VAIN.has(driverCode(error));
}
