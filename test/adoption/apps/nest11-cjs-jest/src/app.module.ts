import { DynamicModule, Module } from '@nestjs/common';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboxModule, PublisherFactory } from 'nestjs-transactional-outbox';
import { AuditEntry } from './audit-entry.entity';
import { CheckoutController, CheckoutService } from './checkout.controller';
import { MailController } from './mail.controller';
import { Order } from './order.entity';
import { OrdersService } from './orders.service';
import { Reservation } from './reservation.entity';
import { StockController } from './stock.controller';

@Module({})
export class AppModule {
  static with(publisher: PublisherFactory): DynamicModule {
    return {
      module: AppModule,
      imports: [
        EventEmitterModule.forRoot(),
        TypeOrmModule.forRoot({
          type: 'better-sqlite3',
          database: ':memory:',
          entities: [Order, Reservation, AuditEntry],
          synchronize: true,
        }),
        TypeOrmModule.forFeature([Order, Reservation]),
        OutboxModule.forRootAsync({ useFactory: async () => ({ publisher, createTables: true }) }),
      ],
      providers: [OrdersService, CheckoutService],
      controllers: [StockController, CheckoutController, MailController],
    };
  }
}
