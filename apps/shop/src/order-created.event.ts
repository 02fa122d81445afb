import { IsInt, IsString, IsUUID, Length, Min } from 'class-validator';
import { OutboxEvent } from 'nestjs-transactional-outbox';
import { Topics } from './topics.js';

/** A customer has placed an order. */
@OutboxEvent({ type: 'order.created', topic: Topics.orders, key: (event: OrderCreated) => event.orderId })
export class OrderCreated {
  @IsUUID()
  orderId!: string;

  @IsString()
  @Length(1, 64)
  productId!: string;

  @IsInt()
  @Min(1)
  quantity!: number;
}
