import { type DynamicModule, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboxModule, type PublisherFactory } from 'nestjs-transactional-outbox';
import { Order } from './order.entity.js';
import { OrdersService } from './orders.service.js';
import { Reservation } from './reservation.entity.js';
import { StockController } from './stock.controller.js';

@Module({})
export class AppModule {
  static with(publisher: PublisherFactory): DynamicModule {
    return {
      module: AppModule,
      imports: [
        TypeOrmModule.forRoot({
          type: 'better-sqlite3',
          database: ':memory:',
          autoLoadEntities: true,
          synchronize: true,
        }),
        TypeOrmModule.forFeature([Order, Reservation]),
        OutboxModule.forRoot({ publisher, createTables: true }),
      ],
      providers: [OrdersService],
      controllers: [StockController],
    };
  }
}
