import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Reservation } from './reservation.entity.js';
import { StockController } from './stock.controller.js';
import { StockDelivery } from './stock-delivery.js';
import { StockItem } from './stock-item.entity.js';
import { StockPageController } from './stock-page.controller.js';
import { StockService } from './stock.service.js';

/** Keeps the stock. Database, outbox and transport come from outside, so that demo and tests can bring their own. */
@Module({
  imports: [TypeOrmModule.forFeature([StockItem, Reservation])],
  controllers: [StockController, StockPageController],
  providers: [StockService, StockDelivery],
})
export class InventoryModule {}
