import 'reflect-metadata';
import { applyDecorators, type Type, UseInterceptors } from '@nestjs/common';
import { DEFAULT_DATA_SOURCE } from '../transaction/tokens';
import { type ConsumerMetadata, markConsumer } from './consumer-metadata';
import { eventsByType } from './typed-event';
import { assertConsumerName } from './consumer-name';
import type { IdempotentConsumerOptions } from './consumer-options';
import { assertConsumerOptions } from './consumer-options-check';
import { idempotentConsumerInterceptor } from './idempotent-consumer.interceptor';

/**
 * Makes a message handler act once for each message: it runs in a database transaction that first records the
 * message's id for this consumer, so that the record, what the handler writes and what it emits commit together or
 * not at all. A repeat is acknowledged without running the handler. A failure undoes everything and is tried again;
 * what fails for good goes to a dead-letter topic.
 *
 * On a controller it holds for all its message handlers, which then share the name.
 *
 * The name is what repeats are recognised by, with the id: give each handler its own and never change it.
 *
 * @param name such as `inventory.reserve`, at most 100 characters
 * @throws OutboxOptionsError when the name or an option is not valid, or two of the events have one type
 * @throws EventNotDecoratedError when a class of `events` has no `@OutboxEvent`
 * @throws ConsumerMisplacedError when the handler or controller is a consumer already
 */
export function IdempotentConsumer<E extends readonly Type<object>[] = readonly Type<object>[]>(
  name: string,
  options: IdempotentConsumerOptions<E> = {},
): MethodDecorator & ClassDecorator {
  assertConsumerName(name);
  assertConsumerOptions(options as IdempotentConsumerOptions, `@IdempotentConsumer("${name}"): `);
  const metadata: ConsumerMetadata = {
    name,
    events: options.events && eventsByType(options.events),
    options: options as IdempotentConsumerOptions,
    isBatch: false,
  };
  return applyDecorators(
    markConsumer(metadata),
    UseInterceptors(idempotentConsumerInterceptor(options.dataSource ?? DEFAULT_DATA_SOURCE)),
  );
}
