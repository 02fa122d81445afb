import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { tokenOf } from '../../transaction/tokens';
import { CONSUMER, type ConsumerMetadata } from '../consumer-metadata';
import { deliveryOf } from '../delivery';
import { BatchConsumer } from './batch-consumer';
import { contextOf, KafkaBatch } from './kafka-batch';

/** The interceptor for the batch consumers of one data source. */
export function idempotentBatchConsumerInterceptor(dataSource: string): Type<NestInterceptor> {
  @Injectable()
  class IdempotentBatchConsumerInterceptor implements NestInterceptor {
    constructor(
      @Inject(Reflector) private readonly reflector: Reflector,
      @Inject(tokenOf(BatchConsumer, dataSource)) private readonly consumers: BatchConsumer,
    ) {}

    intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
      return from(this.consume(context, next));
    }

    private consume(context: ExecutionContext, next: CallHandler): Promise<void> {
      const consumer = this.reflector.get<ConsumerMetadata>(CONSUMER, context.getHandler());
      const args: unknown[] = context.getArgs();
      const [batch] = args;
      // A server that knows no batches brings each message alone.
      const contexts = batch instanceof KafkaBatch ? batch.items.map((item) => contextOf(context, item)) : [copyOf(context)];
      return this.consumers.consume(
        consumer,
        contexts.map(deliveryOf),
        (messages) => {
          args[0] = messages.map(({ payload }) => payload);
          args[1] = messages;
          return lastValueFrom(next.handle(), { defaultValue: undefined });
        },
        ({ origin }) => {
          if (batch instanceof KafkaBatch && origin) batch.resolve(origin.offset);
        },
      );
    }
  }
  return IdempotentBatchConsumerInterceptor;
}

/** The arguments of the call are replaced by what the handler takes; what the message was must stay. */
function copyOf(context: ExecutionContext): ExecutionContext {
  const [data, transport] = context.getArgs<[unknown, object]>();
  return contextOf(context, { data, context: transport });
}
