import 'reflect-metadata';
import { applyDecorators, SetMetadata, type Type, UseInterceptors } from '@nestjs/common';
import { OutboxOptionsError } from '../errors';
import { eventOptionsOf } from '../event/outbox-event.decorator';
import { DEFAULT_DATA_SOURCE } from '../transaction/tokens';
import { CONSUMER, type ConsumerMetadata } from './consumer-metadata';
import { idempotentConsumerInterceptor } from './idempotent-consumer.interceptor';

export interface IdempotentConsumerOptions {
  /**
   * The events that the handler wants. Messages of other types are acknowledged and leave no trace; the payload
   * arrives as an instance of the event's class. Default: every message, with the payload as Nest gives it.
   */
  readonly events?: readonly Type<object>[];
  /** Name of the data source. Default `default`. */
  readonly dataSource?: string;
}

/** Longest name of a consumer, in characters. */
const MAX_NAME_LENGTH = 100;

/**
 * Makes a message handler act once for each message: it runs in a database transaction that first records the
 * message's id for this consumer, so that the record, what the handler writes and what it emits commit together or
 * not at all. A repeat is acknowledged without running the handler.
 *
 * The name is what repeats are recognised by, with the id: give each handler its own and never change it.
 *
 * @param name such as `inventory.reserve`, at most 100 characters
 * @throws OutboxOptionsError when the name is empty or too long, or two of the events have one type
 * @throws EventNotDecoratedError when a class of `events` has no `@OutboxEvent`
 */
export function IdempotentConsumer(
  name: string,
  options: IdempotentConsumerOptions = {},
): MethodDecorator & ClassDecorator {
  if (name.length === 0 || name.length > MAX_NAME_LENGTH) {
    throw new OutboxOptionsError(`@IdempotentConsumer: the name must have 1 to ${MAX_NAME_LENGTH} characters.`);
  }
  const metadata: ConsumerMetadata = { name, events: options.events && eventsByType(options.events) };
  return applyDecorators(
    SetMetadata(CONSUMER, metadata),
    UseInterceptors(idempotentConsumerInterceptor(options.dataSource ?? DEFAULT_DATA_SOURCE)),
  );
}

function eventsByType(events: readonly Type<object>[]): ReadonlyMap<string, Type<object>> {
  const byType = new Map(events.map((event) => [eventOptionsOf(event).type, event]));
  if (byType.size < events.length) {
    throw new OutboxOptionsError('@IdempotentConsumer: two of the events have the same type.');
  }
  return byType;
}
