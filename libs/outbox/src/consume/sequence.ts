import { MessageStaleError, SequenceInvalidError } from '../errors';
import type { SequenceOptions } from './consumer-options';
import type { Delivery } from './delivery';
import { contextText } from './incoming-context';

/** A message's place among those of its key, as decimal text. */
export interface Place {
  readonly key: string;
  readonly place: string;
}

const WHOLE = /^[+-]?\d{1,19}$/;

/** @throws SequenceInvalidError */
export function placeOf(options: SequenceOptions, payload: unknown, delivery: Delivery): Place {
  let place: unknown;
  let key: unknown = delivery.key;
  try {
    place = options.of(payload);
    if (options.key) key = options.key(payload);
  } catch (error) {
    throw new SequenceInvalidError('The sequence option failed on the message.', { cause: error });
  }
  const text = contextText(key);
  if (text === undefined) throw new SequenceInvalidError('The sequence option needs a key of 1 to 190 characters.');
  return { key: text, place: wholeNumber(place) };
}

function wholeNumber(place: unknown): string {
  const isWhole =
    typeof place === 'bigint' || (typeof place === 'number' ? Number.isSafeInteger(place) : typeof place === 'string' && WHOLE.test(place));
  const number = isWhole ? BigInt(place as bigint | number | string) : undefined;
  if (number !== undefined && BigInt.asIntN(64, number) === number) return number.toString();
  throw new SequenceInvalidError(`The place of a message must be a whole number of 64 bits, not ${String(place)}.`);
}

/** @throws MessageStaleError when the key is further than the message */
export function assertNotStale({ key, place }: Place, last: string): void {
  if (last === place) return;
  throw new MessageStaleError(`The message has place ${place} of ${key}, which is at ${last}.`);
}
