import { Body, Controller, Get, NotFoundException, Param, ParseUUIDPipe, Post } from '@nestjs/common';
import type { Order } from './order.entity.js';
import { OrdersService } from './orders.service.js';
import { PlaceOrder } from './place-order.dto.js';

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post()
  place(@Body() request: PlaceOrder): Promise<Order> {
    return this.orders.place(request);
  }

  @Get()
  list(): Promise<Order[]> {
    return this.orders.list();
  }

  @Get(':id')
  async find(@Param('id', ParseUUIDPipe) id: string): Promise<Order> {
    const order = await this.orders.find(id);
    if (!order) throw new NotFoundException(`There is no order ${id}.`);
    return order;
  }
}
