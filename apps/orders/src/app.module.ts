import { type DynamicModule, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboxModule } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { databaseOptions } from '../../shop/src/database.js';
import { HealthModule } from '../../shop/src/health.module.js';
import type { OrdersEnvironment } from './environment.js';
import { OrdersModule } from './orders.module.js';

@Module({})
export class AppModule {
  static of({ databaseUrl, brokers, relay }: OrdersEnvironment): DynamicModule {
    return {
      module: AppModule,
      imports: [
        TypeOrmModule.forRoot({ ...databaseOptions(databaseUrl), autoLoadEntities: true }),
        OutboxModule.forRoot({
          publisher: kafkaPublisher({ clientId: 'orders', brokers: [...brokers] }),
          relay: { enabled: relay },
        }),
        OrdersModule,
        HealthModule,
      ],
    };
  }
}
