import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { EmitsEvent, Transactional } from 'nestjs-transactional-outbox';
import type { Repository } from 'typeorm';
import { OrderCreated } from '../../shop/src/order-created.event.js';
import { Order } from './order.entity.js';
import type { PlaceOrder } from './place-order.dto.js';

/** Longest list that is given out. */
const LIST_LENGTH = 100;

@Injectable()
export class OrdersService {
  constructor(@InjectRepository(Order) private readonly orders: Repository<Order>) {}

  @Transactional()
  @EmitsEvent(OrderCreated, ({ id, productId, quantity }: Order) => ({ orderId: id, productId, quantity }))
  async place({ productId, quantity }: PlaceOrder): Promise<Order> {
    return this.orders.save(this.orders.create({ id: randomUUID(), productId, quantity, status: 'placed' }));
  }

  /** The newest orders first. */
  list(): Promise<Order[]> {
    return this.orders.find({ order: { createdAt: 'DESC' }, take: LIST_LENGTH });
  }

  find(id: string): Promise<Order | null> {
    return this.orders.findOneBy({ id });
  }
}
