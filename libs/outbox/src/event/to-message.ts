import { v7 as uuidv7, validate as isUuid } from 'uuid';
import { EventInvalidError, EventTooLargeError } from '../errors';
import { RESERVED_HEADERS } from './headers';
import type { OutboxMessage } from './message';
import type { MessageContext } from './message-context';
import type { RawMessage } from './raw-message';

/** Longest key, id and type, in characters: of four bytes each, they fit an index of 767 bytes. */
export const MAX_NAME_LENGTH = 190;

const TOPIC = /^(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}$/;

/** Whether Kafka takes it for the name of a topic. */
export function isTopic(topic: string): boolean {
  return TOPIC.test(topic);
}

/**
 * Completes and checks a message, so that a bad one fails where it is emitted and not where it is published.
 *
 * @throws EventInvalidError, EventTooLargeError
 */
export function toMessage(
  raw: RawMessage,
  maxBytes: number,
  context: MessageContext,
  reservedHeaders: ReadonlySet<string> = RESERVED_HEADERS,
): OutboxMessage {
  const check = new Check(raw.type, reservedHeaders);
  const messageId = raw.messageId === undefined ? uuidv7() : check.uuid(raw.messageId);
  const key = raw.key === undefined || raw.key === null ? null : check.text('key', raw.key, MAX_NAME_LENGTH);
  if (!isTopic(raw.topic)) throw check.invalid('topic', 'must be 1 to 249 of a-z A-Z 0-9 . _ -');
  const message: OutboxMessage = {
    messageId,
    topic: raw.topic,
    key,
    type: check.text('type', raw.type, MAX_NAME_LENGTH),
    aggregateType: check.text('aggregateType', raw.aggregateType ?? raw.topic, 249),
    aggregateId: check.text('aggregateId', raw.aggregateId ?? key ?? messageId, MAX_NAME_LENGTH),
    tenantId: check.optional('tenantId', context.tenantId),
    traceparent: check.optional('traceparent', context.traceparent),
    correlationId: check.optional('correlationId', context.correlationId) ?? messageId,
    causationId: check.optional('causationId', context.causationId),
    headers: check.headers({ ...context.headers, ...raw.headers }),
    payload: raw.payload === null ? null : check.payload(raw.payload),
  };
  const bytes = messageBytes(message);
  if (bytes > maxBytes) {
    throw new EventTooLargeError(
      `The message ${raw.type} takes ${bytes} bytes, more than maxMessageBytes (${maxBytes}). ` +
        'Store the large part elsewhere and send a reference to it.',
    );
  }
  return message;
}

/** Bytes of payload, key and headers: what the record weighs on the wire, but for a few bytes of framing. */
export function messageBytes(message: OutboxMessage): number {
  let bytes = Buffer.byteLength(message.payload ?? '') + Buffer.byteLength(message.key ?? '');
  for (const [header, value] of Object.entries(message.headers)) {
    bytes += Buffer.byteLength(header) + Buffer.byteLength(value);
  }
  return bytes;
}

/** Checks the parts of one message; what it gives back can be stored and sent as it is. */
class Check {
  constructor(
    private readonly type: string,
    private readonly reservedHeaders: ReadonlySet<string>,
  ) {}

  text(what: string, value: unknown, maxLength: number): string {
    if (typeof value !== 'string') throw this.invalid(what, `must be a string, not ${kindOf(value)}`);
    if (value.length === 0) throw this.invalid(what, 'must not be empty');
    if (value.length > maxLength) throw this.invalid(what, `must have at most ${maxLength} characters`);
    return this.storable(what, value);
  }

  optional(what: string, value: unknown): string | null {
    return value === undefined ? null : this.text(what, value, MAX_NAME_LENGTH);
  }

  uuid(value: unknown): string {
    if (typeof value !== 'string' || !isUuid(value)) throw this.invalid('messageId', 'must be a UUID');
    return value.toLowerCase();
  }

  payload(value: unknown): string {
    if (typeof value !== 'string') throw this.invalid('payload', `must be a string or null, not ${kindOf(value)}`);
    return this.storable('payload', value);
  }

  headers(headers: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
    for (const [name, value] of Object.entries(headers)) {
      const what = `headers.${name}`;
      if (name.length === 0) throw this.invalid('headers', 'must not have an empty name');
      if (this.reservedHeaders.has(name)) throw this.invalid(what, 'is a header that the outbox sets itself');
      if (typeof value !== 'string') throw this.invalid(what, `must be a string, not ${kindOf(value)}`);
      this.storable(what, `${name}${value}`);
    }
    return headers as Readonly<Record<string, string>>;
  }

  /** PostgreSQL takes no NUL in a text, and half a surrogate pair has no UTF-8. */
  private storable(what: string, value: string): string {
    if (value.includes('\u0000')) throw this.invalid(what, 'must not contain the character NUL');
    if (!value.isWellFormed()) throw this.invalid(what, 'must be well-formed Unicode');
    return value;
  }

  invalid(what: string, reason: string): EventInvalidError {
    return new EventInvalidError(`The event ${this.type} is not valid: ${what} ${reason}.`, { [what]: [reason] });
  }
}

function kindOf(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value;
}
