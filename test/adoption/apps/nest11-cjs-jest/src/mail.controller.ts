import { Controller, Scope } from '@nestjs/common';
import { Ctx, EventPattern, KafkaContext, Payload } from '@nestjs/microservices';
import { IdempotentConsumer } from 'nestjs-transactional-outbox';
import { AuditEntry } from './audit-entry.entity';
import { OrderCreated } from './order-created.event';

/** A second consumer of the same topic, made anew for each message. */
@Controller({ scope: Scope.REQUEST })
export class MailController {
  @EventPattern('orders')
  @IdempotentConsumer('mail.confirm', { events: [OrderCreated] })
  async confirm(@Payload() event: OrderCreated, @Ctx() context: KafkaContext): Promise<void> {
    await AuditEntry.insert({ text: `mail for ${event.summary()} from ${context.getTopic()}` });
  }
}
