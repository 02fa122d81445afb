import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { EmitsEvent, Outbox, Transactional } from 'nestjs-transactional-outbox';
import { Repository } from 'typeorm';
import { OrderCreated } from './order-created.event.js';
import { Order } from './order.entity.js';

const toEvent = ({ id, sku, quantity }: Order) => ({ orderId: id, sku, quantity });

@Injectable()
export class OrdersService {
  constructor(
    @InjectRepository(Order) private readonly orders: Repository<Order>,
    private readonly outbox: Outbox,
  ) {}

  @Transactional()
  @EmitsEvent(OrderCreated, toEvent)
  async place(sku: string, quantity: number): Promise<Order> {
    return this.orders.save(this.orders.create({ sku, quantity }));
  }

  /** Stores and emits by hand, and fails afterwards. */
  @Transactional()
  async placeAndFail(sku: string): Promise<Order> {
    const order = await this.orders.save(this.orders.create({ sku, quantity: 1 }));
    this.outbox.emit(Object.assign(new OrderCreated(), toEvent(order)));
    throw new Error('The customer changed their mind');
  }
}
