import { SetMetadata, type Type } from '@nestjs/common';
import { ConsumerMisplacedError } from '../errors';
import type { IdempotentConsumerOptions } from './consumer-options';

/** Where `@IdempotentConsumer` leaves its {@link ConsumerMetadata}. */
export const CONSUMER = 'nestjs-transactional-outbox:consumer';

/** What the interceptor knows of a handler. */
export interface ConsumerMetadata {
  readonly name: string;
  /** The wanted events by their type; `undefined`: every message. */
  readonly events: ReadonlyMap<string, Type<object>> | undefined;
  readonly options: IdempotentConsumerOptions;
  /** Whether the handler takes several messages at a time. */
  readonly isBatch: boolean;
}

/**
 * Makes a handler, or all of a controller, one consumer.
 *
 * @throws ConsumerMisplacedError when it is one already: of two, the inner one would take every message for a repeat
 */
export function markConsumer(metadata: ConsumerMetadata): MethodDecorator & ClassDecorator {
  return (target: object, key?: string | symbol, descriptor?: PropertyDescriptor) => {
    const before = Reflect.getMetadata(CONSUMER, (descriptor?.value as object | undefined) ?? target) as ConsumerMetadata | undefined;
    if (before) {
      const place = key === undefined ? (target as Type).name : `${target.constructor.name}.${String(key)}`;
      throw new ConsumerMisplacedError(`${place} is the consumer "${before.name}" already, and cannot be "${metadata.name}" too.`);
    }
    const mark = SetMetadata(CONSUMER, metadata) as (...decorated: unknown[]) => void;
    mark(target, key, descriptor);
  };
}
