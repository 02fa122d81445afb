import { MessageIdInvalidError, MessageIdMissingError } from '../errors';

/** A message as far as the consumer side must know it. */
export interface IncomingMessage {
  readonly id: string;
  /** The event's type, when the message names one. */
  readonly type: string | undefined;
}

/** Longest message id, in characters. */
const MAX_ID_LENGTH = 190;

interface KafkaMessageContext {
  getMessage(): { readonly headers?: Readonly<Record<string, unknown>> };
}

/**
 * Reads a message's id and type from the headers of its Kafka context. The value is left alone.
 *
 * @throws MessageIdMissingError when there is no header `id`, or it is empty
 * @throws MessageIdInvalidError when it is given more than once or too long
 */
export function incomingMessage(context: unknown): IncomingMessage {
  if (!isKafkaContext(context)) {
    throw new MessageIdMissingError('@IdempotentConsumer works on Kafka handlers: this context carries no headers.');
  }
  const headers = context.getMessage().headers ?? {};
  const id = text(headers['id']);
  if (id === undefined || id === '') {
    throw new MessageIdMissingError('The message has no header "id", so a repeat of it could not be recognised.');
  }
  if (id.length > MAX_ID_LENGTH) {
    throw new MessageIdInvalidError(`The message id has ${id.length} characters, more than ${MAX_ID_LENGTH}.`);
  }
  return { id, type: text(headers['event_type']) };
}

function isKafkaContext(context: unknown): context is KafkaMessageContext {
  return (
    typeof context === 'object' &&
    context !== null &&
    'getMessage' in context &&
    typeof context.getMessage === 'function'
  );
}

/** Kafka gives header values as bytes; a repeated header comes as an array. */
function text(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  if (Buffer.isBuffer(value)) return value.toString('utf8');
  throw new MessageIdInvalidError('The message repeats a header that must be single: "id" or "event_type".');
}
