import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  Logger,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { plainToInstance } from 'class-transformer';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { tokenOf } from '../transaction/tokens';
import { CONSUMER, type ConsumerMetadata } from './consumer-metadata';
import { incomingMessage } from './incoming-message';
import { IdempotentRunner } from './idempotent-runner';

/** The interceptor for the consumers of one data source. */
export function idempotentConsumerInterceptor(dataSource: string): Type<NestInterceptor> {
  @Injectable()
  class IdempotentConsumerInterceptor implements NestInterceptor {
    private readonly logger = new Logger('OutboxConsumer');

    constructor(
      @Inject(Reflector) private readonly reflector: Reflector,
      @Inject(tokenOf(IdempotentRunner, dataSource)) private readonly runner: IdempotentRunner,
    ) {}

    intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
      // An observable of one value, never EMPTY: Nest's Kafka server waits for a value.
      return from(this.consume(context, next));
    }

    private async consume(context: ExecutionContext, next: CallHandler): Promise<unknown> {
      const consumer = this.reflector.getAllAndOverride<ConsumerMetadata>(CONSUMER, [
        context.getHandler(),
        context.getClass(),
      ]);
      const message = incomingMessage(context.switchToRpc().getContext());
      if (consumer.events) {
        const event = message.type === undefined ? undefined : consumer.events.get(message.type);
        if (!event) return undefined;
        const args: unknown[] = context.getArgs();
        args[0] = plainToInstance(event, args[0]);
      }
      const consumed = await this.runner.run(consumer.name, message.id, () =>
        lastValueFrom(next.handle(), { defaultValue: undefined }),
      );
      if (!consumed.duplicate) return consumed.result;
      this.logger.debug(`${consumer.name}: message ${message.id} was handled before; skipped.`);
      return undefined;
    }
  }
  return IdempotentConsumerInterceptor;
}
