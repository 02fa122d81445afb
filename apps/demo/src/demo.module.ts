import { type DynamicModule, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboxModule } from 'nestjs-transactional-outbox';
import type { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { InventoryModule } from '../../inventory/src/inventory.module.js';
import { Order } from '../../orders/src/order.entity.js';
import { OrdersModule } from '../../orders/src/orders.module.js';
import { HealthModule } from '../../shop/src/health.module.js';
import { DeclinedPayment } from './declined-payment.service.js';
import { DeliveryCounter } from './delivery-counter.controller.js';

/** The whole shop in one process: the modules of the real apps on SQLite in memory and an in-memory broker. */
@Module({})
export class DemoModule {
  static of(broker: InMemoryBroker): DynamicModule {
    return {
      module: DemoModule,
      imports: [
        TypeOrmModule.forRoot({ type: 'better-sqlite3', database: ':memory:', autoLoadEntities: true, synchronize: true }),
        OutboxModule.forRoot({
          publisher: broker.publisher(),
          createTables: true,
          // A relay that lost an answer soon tries again; the story wants to stop it before that, on any machine.
          relay: { retryDelay: 10_000 },
        }),
        OrdersModule,
        InventoryModule,
        HealthModule,
        TypeOrmModule.forFeature([Order]),
      ],
      controllers: [DeliveryCounter],
      providers: [DeclinedPayment],
    };
  }
}
