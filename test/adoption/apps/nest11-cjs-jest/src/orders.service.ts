import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { InjectRepository } from '@nestjs/typeorm';
import { EmitsEvent, Outbox, Transactional } from 'nestjs-transactional-outbox';
import { Repository } from 'typeorm';
import { Journaled } from './journaled.decorator';
import { OrderCreated } from './order-created.event';
import { Order } from './order.entity';

const toEvent = ({ id, sku, quantity }: Order) => ({ orderId: id, sku, quantity });

@Injectable()
export class OrdersService {
  constructor(
    @InjectRepository(Order) private readonly orders: Repository<Order>,
    private readonly outbox: Outbox,
  ) {}

  @Journaled('outside')
  @Transactional()
  @Journaled('between')
  @EmitsEvent(OrderCreated, toEvent)
  @Journaled('inside')
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

  @OnEvent('cart.closed')
  @Transactional()
  @EmitsEvent(OrderCreated, toEvent)
  async onCartClosed(cart: { sku: string }): Promise<Order> {
    return this.orders.save(this.orders.create({ sku: cart.sku, quantity: 1 }));
  }

  @EmitsEvent(OrderCreated, toEvent)
  @Transactional()
  @OnEvent('cart.given')
  async onCartGiven(cart: { sku: string }): Promise<Order> {
    return this.orders.save(this.orders.create({ sku: cart.sku, quantity: 1 }));
  }
}
