import { type DynamicModule, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboxModule } from 'nestjs-transactional-outbox';
import { databaseOptions } from '../../shop/src/database.js';
import { HealthModule } from '../../shop/src/health.module.js';
import { publisherOf } from '../../shop/src/publisher.js';
import type { OrdersEnvironment } from './environment.js';
import { OrdersModule } from './orders.module.js';

@Module({})
export class AppModule {
  static of({ databaseUrl, relay, ...kafka }: OrdersEnvironment): DynamicModule {
    return {
      module: AppModule,
      imports: [
        TypeOrmModule.forRoot({ ...databaseOptions(databaseUrl), autoLoadEntities: true }),
        OutboxModule.forRoot({
          publisher: publisherOf('orders', kafka),
          relay: { enabled: relay },
        }),
        OrdersModule,
        HealthModule,
      ],
    };
  }
}
