import { IsInt, IsString, IsUUID, Min } from 'class-validator';
import { OutboxEvent } from 'nestjs-transactional-outbox';

@OutboxEvent({ type: 'order.created', topic: 'orders', key: (event: OrderCreated) => event.orderId })
export class OrderCreated {
  @IsUUID() orderId!: string;
  @IsString() sku!: string;
  @IsInt() @Min(1) quantity!: number;

  summary(): string {
    return `${this.quantity} × ${this.sku}`;
  }
}
