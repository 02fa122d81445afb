import { OutboxOptionsError } from '../../errors';

const DEFAULT_MAX_REQUEST_BYTES = 900_000;

/** @throws OutboxOptionsError */
export function requestBytes(maxRequestBytes: number = DEFAULT_MAX_REQUEST_BYTES): number {
  if (typeof maxRequestBytes === 'number' && maxRequestBytes > 0) return maxRequestBytes;
  throw new OutboxOptionsError(`maxRequestBytes has to be a number above 0, not ${String(maxRequestBytes)}.`);
}
