import { OutboxOptionsError } from '../errors';

/** @throws OutboxOptionsError naming what `known` does not have */
export function assertKnown(options: object, known: object, prefix: string): void {
  const unknown = Object.keys(options).filter((name) => !Object.hasOwn(known, name));
  if (unknown.length === 0) return;
  throw new OutboxOptionsError(`Unknown option ${prefix}${unknown.join(', ')}. Known are: ${Object.keys(known).join(', ')}.`);
}
