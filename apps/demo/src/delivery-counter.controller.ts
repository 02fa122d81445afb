import { Controller } from '@nestjs/common';
import { Ctx, EventPattern, type KafkaContext } from '@nestjs/microservices';
import { Topics } from '../../shop/src/topics.js';

/** A plain handler on the same topic, without `@IdempotentConsumer`: it acts on every delivery, repeats included. */
@Controller()
export class DeliveryCounter {
  private readonly counts = new Map<string, number>();

  @EventPattern(Topics.orders)
  count(@Ctx() context: KafkaContext): void {
    const id = String(context.getMessage().headers?.['id']);
    this.counts.set(id, this.of(id) + 1);
  }

  of(messageId: string): number {
    return this.counts.get(messageId) ?? 0;
  }
}
