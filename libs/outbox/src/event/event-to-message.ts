import type { Type } from '@nestjs/common';
import { validateSync, type ValidationError } from 'class-validator';
import { v7 as uuidv7 } from 'uuid';
import { EventInvalidError, EventTooLargeError } from '../errors';
import type { OutboxMessage } from './message';
import type { MessageContext } from './message-context';
import { eventOptionsOf } from './outbox-event.decorator';
import { serialise } from './serialise';

/** Longest key, aggregate id, type and header id, in characters: four bytes each, they fit an index of 767 bytes. */
const MAX_NAME_LENGTH = 190;

/**
 * Checks and serialises an event, so that a bad one fails where it is emitted and later changes of the object do
 * not reach the message.
 *
 * @throws EventNotDecoratedError, EventInvalidError, EventNotSerialisableError, EventTooLargeError
 */
export function eventToMessage(event: object, maxBytes: number, context: MessageContext = {}): OutboxMessage {
  const options = eventOptionsOf(event.constructor as Type<object>);
  validate(event, options.type);
  const key = options.key ?? options.aggregateId;
  const aggregateId = options.aggregateId ?? options.key;
  const messageId = uuidv7();
  const message: OutboxMessage = {
    messageId,
    topic: options.topic,
    key: key ? name(key(event), 'key', options.type) : null,
    type: options.type,
    aggregateType: options.aggregateType ?? options.topic,
    aggregateId: aggregateId ? name(aggregateId(event), 'aggregateId', options.type) : messageId,
    tenantId: context.tenantId ?? null,
    traceparent: context.traceparent ?? null,
    correlationId: context.correlationId ?? messageId,
    causationId: context.causationId ?? null,
    headers: options.headers?.(event) ?? {},
    payload: serialise(event),
  };
  const bytes = messageBytes(message);
  if (bytes > maxBytes) {
    throw new EventTooLargeError(
      `The event ${options.type} takes ${bytes} bytes, more than maxMessageBytes (${maxBytes}). ` +
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

function validate(event: object, type: string): void {
  const errors = validateSync(event, { forbidUnknownValues: false });
  if (errors.length === 0) return;
  const fields: Record<string, string[]> = {};
  collect(errors, '', fields);
  const summary = Object.entries(fields).map(([field, reasons]) => `${field} (${reasons.join(', ')})`);
  throw new EventInvalidError(`The event ${type} is not valid: ${summary.join('; ')}.`, fields);
}

function collect(errors: readonly ValidationError[], prefix: string, fields: Record<string, string[]>): void {
  for (const error of errors) {
    const path = `${prefix}${error.property}`;
    if (error.constraints) fields[path] = Object.values(error.constraints);
    collect(error.children ?? [], `${path}.`, fields);
  }
}

function name(value: unknown, what: string, type: string): string {
  const text = typeof value === 'number' || typeof value === 'bigint' ? String(value) : value;
  if (typeof text !== 'string') {
    throw invalid(type, what, `must be a string, number or bigint, not ${value === null ? 'null' : typeof value}`);
  }
  if (text.length === 0) throw invalid(type, what, 'must not be empty');
  if (text.length > MAX_NAME_LENGTH) throw invalid(type, what, `has more than ${MAX_NAME_LENGTH} characters`);
  if (text.includes('\u0000') || !text.isWellFormed()) throw invalid(type, what, 'is not valid text');
  return text;
}

function invalid(type: string, what: string, reason: string): EventInvalidError {
  return new EventInvalidError(`The ${what} of the event ${type} ${reason}.`, { [what]: [reason] });
}
