import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { InjectRepository } from '@nestjs/typeorm';
import { IdempotentConsumer } from 'nestjs-transactional-outbox';
import { Repository } from 'typeorm';
import { OrderCreated } from './order-created.event';
import { Reservation } from './reservation.entity';

@Controller()
export class StockController {
  /** What the handler was called with. */
  readonly calls: OrderCreated[] = [];

  constructor(@InjectRepository(Reservation) private readonly reservations: Repository<Reservation>) {}

  @EventPattern('orders')
  @IdempotentConsumer('inventory.reserve', { events: [OrderCreated] })
  async reserve(@Payload() event: OrderCreated): Promise<void> {
    this.calls.push(event);
    await this.reservations.save(this.reservations.create({ orderId: event.orderId, summary: event.summary() }));
  }
}
