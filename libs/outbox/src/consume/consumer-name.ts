import { OutboxOptionsError } from '../errors';

/** Longest name of a consumer, in characters. */
const MAX_NAME_LENGTH = 100;

/** @throws OutboxOptionsError when the name is empty or too long for the table */
export function assertConsumerName(name: string): void {
  if (typeof name !== 'string' || name.trim() === '' || name.length > MAX_NAME_LENGTH) {
    throw new OutboxOptionsError(`The name of a consumer must have 1 to ${MAX_NAME_LENGTH} characters: "${String(name)}".`);
  }
}
