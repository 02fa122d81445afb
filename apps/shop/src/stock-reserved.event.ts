import { IsInt, IsString, IsUUID, Length, Min } from 'class-validator';
import { OutboxEvent } from 'nestjs-transactional-outbox';
import { Topics } from './topics.js';

/** Stock was set aside for an order. The key is the product: who follows `available` must see each step in order. */
@OutboxEvent({ type: 'stock.reserved', topic: Topics.stock, key: (event: StockReserved) => event.productId })
export class StockReserved {
  @IsUUID()
  orderId!: string;

  @IsString()
  @Length(1, 64)
  productId!: string;

  @IsInt()
  @Min(1)
  quantity!: number;

  /** What is left of the product after this reservation. */
  @IsInt()
  @Min(0)
  available!: number;
}
