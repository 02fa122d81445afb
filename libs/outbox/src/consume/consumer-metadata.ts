import type { Type } from '@nestjs/common';
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
