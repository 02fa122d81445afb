import { TextDecoder } from 'node:util';
import type { Type } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { OutboxOptionsError, PayloadUnreadableError } from '../errors';
import { assertValid } from '../event/event-to-message';
import { eventOptionsOf } from '../event/outbox-event.decorator';

/** @throws OutboxOptionsError when two of the classes have one type */
export function eventsByType(events: readonly Type<object>[]): ReadonlyMap<string, Type<object>> {
  const byType = new Map(events.map((event) => [eventOptionsOf(event).type, event]));
  if (byType.size < events.length) {
    throw new OutboxOptionsError('events: two of the classes have the same type.');
  }
  return byType;
}

/**
 * The value of a message as a validated instance of an event class. Fields that the class does not know do no harm:
 * the publisher may be newer.
 *
 * @throws PayloadUnreadableError when the value is not a JSON object
 * @throws EventInvalidError naming each field that is not valid
 */
export function readEvent(event: Type<object>, type: string, value: unknown): object {
  const instance = plainToInstance(event, jsonObject(value, type));
  assertValid(instance, type);
  return instance;
}

function jsonObject(value: unknown, type: string): object {
  if (value === null || value === undefined) throw unreadable(type, 'has no value: it is a tombstone');
  const parsed = typeof value === 'string' || Buffer.isBuffer(value) ? parse(value, type) : value;
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw unreadable(type, 'has a value that is not a JSON object');
  }
  return parsed;
}

function parse(value: string | Buffer, type: string): unknown {
  try {
    return JSON.parse(typeof value === 'string' ? value : new TextDecoder('utf-8', { fatal: true }).decode(value));
  } catch (error) {
    throw unreadable(type, 'has a value that is not JSON', error);
  }
}

function unreadable(type: string, what: string, cause?: unknown): PayloadUnreadableError {
  return new PayloadUnreadableError(`The message of type ${type} ${what}.`, { cause });
}
