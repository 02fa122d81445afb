import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { IdempotentConsumer } from 'nestjs-transactional-outbox';
import { OrderCreated } from '../../shop/src/order-created.event.js';
import { Topics } from '../../shop/src/topics.js';
import { StockService } from './stock.service.js';

/** Follows the orders. */
@Controller()
export class StockController {
  constructor(private readonly stock: StockService) {}

  @EventPattern(Topics.orders)
  @IdempotentConsumer('inventory.reserve', { events: [OrderCreated] })
  async reserve(@Payload() event: OrderCreated): Promise<void> {
    await this.stock.reserve(event);
  }
}
