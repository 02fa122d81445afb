import 'reflect-metadata';
import { applyDecorators, type Type, UseInterceptors } from '@nestjs/common';
import { OutboxOptionsError } from '../../errors';
import { DEFAULT_DATA_SOURCE } from '../../transaction/tokens';
import { type ConsumerMetadata, markConsumer } from '../consumer-metadata';
import { assertConsumerName } from '../consumer-name';
import type { BatchConsumerOptions, IdempotentConsumerOptions } from '../consumer-options';
import { assertConsumerOptions } from '../consumer-options-check';
import { eventsByType } from '../typed-event';
import { idempotentBatchConsumerInterceptor } from './idempotent-batch-consumer.interceptor';
import { BATCH_SIZE } from './kafka-batch';

/** Where `@nestjs/microservices` keeps what handlers say about themselves; `@EventPattern` adds to it. */
const EXTRAS = 'microservices:pattern_extras';
const DEFAULT_BATCH_SIZE = 500;

/**
 * As `@IdempotentConsumer`, for a handler that takes many messages at a time: a fetched batch is handled in one
 * transaction. The handler's payload is a list, of those that are new; its `@Ctx()` the list of {@link BatchMessage}. When
 * it fails, the messages are handled one by one, so that only the bad one is tried again and given up.
 *
 * Batches come from `KafkaBatchServer` of `nestjs-transactional-outbox/kafka-batch`; any other transport brings the
 * messages one by one.
 *
 * @param name such as `inventory.project`, at most 100 characters
 * @throws OutboxOptionsError when the name or an option is not valid, or two of the events have one type
 * @throws EventNotDecoratedError when a class of `events` has no `@OutboxEvent`
 * @throws ConsumerMisplacedError when the handler is a consumer already
 */
export function IdempotentBatchConsumer<E extends readonly Type<object>[] = readonly Type<object>[]>(
  name: string,
  { batchSize = DEFAULT_BATCH_SIZE, ...options }: BatchConsumerOptions<E> = {},
): MethodDecorator {
  const prefix = `@IdempotentBatchConsumer("${name}"): `;
  const single: IdempotentConsumerOptions = options;
  assertConsumerName(name);
  assertConsumerOptions(single, prefix);
  if (single.dedupe !== undefined || single.sequence !== undefined) {
    throw new OutboxOptionsError(`${prefix}dedupe and sequence are for single messages; a batch is recognised by the table.`);
  }
  if (!Number.isSafeInteger(batchSize) || batchSize < 1) {
    throw new OutboxOptionsError(`${prefix}batchSize must be a whole number of at least 1.`);
  }
  const metadata: ConsumerMetadata = {
    name,
    events: options.events && eventsByType(options.events),
    options: single,
    isBatch: true,
  };
  return applyDecorators(
    markConsumer(metadata),
    addExtra(BATCH_SIZE, batchSize),
    UseInterceptors(idempotentBatchConsumerInterceptor(options.dataSource ?? DEFAULT_DATA_SOURCE)),
  );
}

/** In either order with `@EventPattern`. */
function addExtra(name: string, value: number): MethodDecorator {
  return (_target, _key, descriptor: PropertyDescriptor) => {
    const method = descriptor.value as object;
    const extras = Reflect.getMetadata(EXTRAS, method) as object | undefined;
    Reflect.defineMetadata(EXTRAS, { ...extras, [name]: value }, method);
  };
}
