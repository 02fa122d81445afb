import type { Type } from '@nestjs/common';
import { validateSync, type ValidationError } from 'class-validator';
import { EventInvalidError } from '../errors';
import type { OutboxMessage } from './message';
import type { MessageContext } from './message-context';
import { eventOptionsOf, type KeyValue } from './outbox-event.decorator';
import { serialise } from './serialise';
import { toMessage } from './to-message';

/**
 * Checks and serialises an event, so that a bad one fails where it is emitted and later changes of the object do
 * not reach the message.
 *
 * @throws EventNotDecoratedError, EventInvalidError, EventNotSerialisableError, EventTooLargeError
 */
export function eventToMessage(
  event: object,
  maxBytes: number,
  context: MessageContext,
  reservedHeaders?: ReadonlySet<string>,
): OutboxMessage {
  const options = eventOptionsOf(event.constructor as Type<object>);
  assertValid(event, options.type);
  const key = resolve('key', options.key ?? options.aggregateId, event, options.type);
  const aggregateId = resolve('aggregateId', options.aggregateId ?? options.key, event, options.type);
  return toMessage(
    {
      topic: options.topic,
      type: options.type,
      payload: serialise(event),
      key: key ?? null,
      headers: {
        ...(options.version === undefined ? {} : { event_version: String(options.version) }),
        ...options.headers?.(event),
      },
      ...(aggregateId === undefined ? {} : { aggregateId }),
      ...(options.aggregateType === undefined ? {} : { aggregateType: options.aggregateType }),
      ...(options.messageId === undefined ? {} : { messageId: options.messageId(event) }),
    },
    maxBytes,
    context,
    reservedHeaders,
  );
}

/** Numbers become their decimal text; what else is not a string is refused by {@link toMessage}. */
function resolve(
  what: string,
  resolver: ((event: object) => KeyValue) | undefined,
  event: object,
  type: string,
): string | undefined {
  const value = resolver?.(event);
  if (resolver && (value === undefined || value === null)) {
    // Without its key the message would go out, and silently lose its order.
    throw new EventInvalidError(`The event ${type} is not valid: ${what} is missing.`, { [what]: ['is missing'] });
  }
  return typeof value === 'number' || typeof value === 'bigint' ? String(value) : value;
}

/** @throws EventInvalidError naming each field that failed, and why */
export function assertValid(event: object, type: string): void {
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
