import { Body, ConflictException, Controller, Inject, Injectable, Post, Scope } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { Transactional } from 'nestjs-transactional-outbox';
import { AuditEntry } from './audit-entry.entity';
import { Order } from './order.entity';
import { OrdersService } from './orders.service';

interface CheckoutRequest {
  readonly headers: { readonly [name: string]: string | undefined };
}

@Injectable({ scope: Scope.REQUEST })
export class CheckoutService {
  constructor(
    @Inject(REQUEST) private readonly request: CheckoutRequest,
    private readonly orders: OrdersService,
  ) {}

  /** Refuses the customer's second order, after it was written. */
  @Transactional()
  async checkout(sku: string): Promise<Order> {
    const customer = this.request.headers['x-customer'] ?? 'nobody';
    const order = await this.orders.place(sku, 1);
    await AuditEntry.create({ text: customer }).save();
    if ((await AuditEntry.countBy({ text: customer })) > 1) throw new ConflictException('One order each');
    return order;
  }
}

@Controller('checkout')
export class CheckoutController {
  constructor(private readonly service: CheckoutService) {}

  @Post()
  checkout(@Body() body: { sku: string }): Promise<Order> {
    return this.service.checkout(body.sku);
  }
}
