import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Transactional } from 'nestjs-transactional-outbox';
import type { Repository } from 'typeorm';
import { Order } from '../../orders/src/order.entity.js';
import { OrdersService } from '../../orders/src/orders.service.js';
import type { PlaceOrder } from '../../orders/src/place-order.dto.js';

export class CardDeclinedError extends Error {
  constructor(
    /** Order rows that the transaction saw before it failed. */
    readonly rowsInside: number,
  ) {
    super('the card was declined');
  }
}

/** A larger transaction around an order, which fails when the order is already saved and its event emitted. */
@Injectable()
export class DeclinedPayment {
  constructor(
    private readonly ordersService: OrdersService,
    @InjectRepository(Order) private readonly orders: Repository<Order>,
  ) {}

  @Transactional()
  async placeAndPay(request: PlaceOrder): Promise<void> {
    await this.ordersService.place(request);
    throw new CardDeclinedError(await this.orders.count());
  }
}
