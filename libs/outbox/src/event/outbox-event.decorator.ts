import 'reflect-metadata';
import type { Type } from '@nestjs/common';
import { EventNotDecoratedError, OutboxOptionsError } from '../errors';
import { isTopic, MAX_NAME_LENGTH } from './to-message';

const EVENT = Symbol('nestjs-transactional-outbox:event');

/** What can be made a key: a number or bigint becomes its decimal text. */
export type KeyValue = string | number | bigint;

/** What `@OutboxEvent` says of an event class. */
export interface OutboxEventOptions<T> {
  /** Stable name of the type, such as `order.created`: consumers select by it. At most 190 characters. */
  readonly type: string;
  /** Kafka topic. At most 249 of the characters `a-z A-Z 0-9 . _ -`. */
  readonly topic: string;
  /**
   * Message key: messages of one key keep their order and share a partition. At most 190 characters. Default: the aggregate id; without either, the message has no key and no order.
   */
  readonly key?: (event: T) => KeyValue;
  /** Id of the aggregate that changed. At most 190 characters. Default: the key. */
  readonly aggregateId?: (event: T) => KeyValue;
  /** Kind of the aggregate, such as `order`. Default: the topic. */
  readonly aggregateType?: string;
  /** Version of the payload's shape; travels as the header `event_version`. */
  readonly version?: number;
  /** A UUID of the event's own, that consumers recognise repeats by. Default: a new one, of version 7. */
  readonly messageId?: (event: T) => string;
  /** Headers of the record, besides those of the library. */
  readonly headers?: (event: T) => Readonly<Record<string, string>>;
}

/**
 * Makes a class an event that can be emitted.
 *
 * @throws OutboxOptionsError when the type or the topic is not a name that the log and Kafka can hold.
 */
export function OutboxEvent<T extends object>(
  options: OutboxEventOptions<T>,
): (target: new (...args: never[]) => T) => void {
  return (target) => {
    if (options.type.length === 0 || options.type.length > MAX_NAME_LENGTH) {
      throw new OutboxOptionsError(`@OutboxEvent of ${target.name}: the type must have 1 to ${MAX_NAME_LENGTH} characters.`);
    }
    if (!isTopic(options.topic)) {
      throw new OutboxOptionsError(
        `@OutboxEvent of ${target.name}: "${options.topic}" is not a topic name (1 to 249 of a-z A-Z 0-9 . _ -).`,
      );
    }
    Reflect.defineMetadata(EVENT, options, target);
  };
}

/**
 * What `@OutboxEvent` said of the class itself, not of one that it extends: a subclass is another event.
 *
 * @throws EventNotDecoratedError
 */
export function eventOptionsOf(type: Type<object>): OutboxEventOptions<object> {
  // In a circle of imports a class may not be there yet.
  const options = typeof type === 'function' ? (Reflect.getOwnMetadata(EVENT, type) as OutboxEventOptions<object> | undefined) : undefined;
  if (!options) {
    throw new EventNotDecoratedError(`${typeof type === 'function' ? type.name : String(type)} is not an event: decorate the class with @OutboxEvent({ … }).`);
  }
  return options;
}
