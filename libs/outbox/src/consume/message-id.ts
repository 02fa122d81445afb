import { createHash } from 'node:crypto';
import { MessageIdInvalidError, MessageIdMissingError, OutboxError } from '../errors';
import type { ConsumerPolicy } from './consumer-options';
import type { Delivery, MessageOrigin } from './delivery';

/** Longest message id, in characters. */
const MAX_ID_LENGTH = 190;

/**
 * The id that repeats of a message are recognised by.
 *
 * @throws MessageIdMissingError, MessageIdInvalidError
 */
export function messageIdOf(policy: ConsumerPolicy, delivery: Delivery): string {
  const given = policy.messageId ? resolved(policy.messageId, delivery) : header(delivery);
  if (given !== undefined && given !== null && given !== '') return checkedId(given);
  if (policy.missingMessageId === 'offset' && delivery.origin) return originId(delivery.origin);
  throw new MessageIdMissingError(
    policy.messageId
      ? 'The messageId option gives no id for the message, so a repeat of it could not be recognised.'
      : 'The message has no header "id", so a repeat of it could not be recognised.',
  );
}

/** An id made of the place in Kafka. It is good as long as the topic is not deleted and made again. */
export function originId({ topic, partition, offset }: MessageOrigin): string {
  const id = `${topic}:${partition}:${offset}`;
  return id.length <= MAX_ID_LENGTH ? id : createHash('sha256').update(id).digest('hex');
}

function resolved(resolver: NonNullable<ConsumerPolicy['messageId']>, { context }: Delivery): unknown {
  try {
    return resolver(context);
  } catch (error) {
    if (error instanceof OutboxError) throw error;
    throw new MessageIdInvalidError('The messageId option failed on the message.', { cause: error });
  }
}

function header({ headers }: Delivery): unknown {
  const id = headers['id'];
  // Nest joins a header that is given more than once with commas.
  if (typeof id === 'string' && id.includes(',')) {
    throw new MessageIdInvalidError('The message has its header "id" more than once, or one with a comma.');
  }
  return id;
}

/** @throws MessageIdInvalidError when it is not text that the table holds whole */
export function checkedId(given: unknown): string {
  const id = Buffer.isBuffer(given) ? given.toString('utf8') : given;
  if (typeof id !== 'string') {
    throw new MessageIdInvalidError(`The message id must be text, not ${Array.isArray(id) ? 'a list' : typeof id}.`);
  }
  if (id.length === 0 || id.length > MAX_ID_LENGTH) {
    throw new MessageIdInvalidError(`The message id has ${id.length} characters, not 1 to ${MAX_ID_LENGTH}.`);
  }
  // U+FFFD is what bytes that are not UTF-8 become: two such ids could look the same.
  if (id.includes('\u0000') || id.includes('\ufffd') || !id.isWellFormed()) {
    throw new MessageIdInvalidError('The message id is not valid text.');
  }
  return id;
}
