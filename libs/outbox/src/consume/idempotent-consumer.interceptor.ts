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
import { tokenOf } from '../transaction/tokens';
import { CONSUMER, type ConsumerMetadata } from './consumer-metadata';
import { deliveryOf } from './delivery';
import { MessageConsumer } from './message-consumer';

/** The interceptor for the consumers of one data source. */
export function idempotentConsumerInterceptor(dataSource: string): Type<NestInterceptor> {
  @Injectable()
  class IdempotentConsumerInterceptor implements NestInterceptor {
    constructor(
      @Inject(Reflector) private readonly reflector: Reflector,
      @Inject(tokenOf(MessageConsumer, dataSource)) private readonly consumers: MessageConsumer,
    ) {}

    intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
      // A decorated controller may have HTTP routes too.
      if (context.getType() !== 'rpc') return next.handle();
      // An observable of one value, never EMPTY: Nest's Kafka server waits for a value.
      return from(this.consume(context, next));
    }

    private consume(context: ExecutionContext, next: CallHandler): Promise<unknown> {
      const consumer = this.reflector.getAllAndOverride<ConsumerMetadata>(CONSUMER, [
        context.getHandler(),
        context.getClass(),
      ]);
      return this.consumers.consume(consumer, deliveryOf(context), (event) => {
        const args: unknown[] = context.getArgs();
        if (event) args[0] = event;
        return lastValueFrom(next.handle(), { defaultValue: undefined });
      });
    }
  }
  return IdempotentConsumerInterceptor;
}
