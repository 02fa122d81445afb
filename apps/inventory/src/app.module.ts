import { type DynamicModule, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboxModule } from 'nestjs-transactional-outbox';
import { databaseOptions } from '../../shop/src/database.js';
import { HealthModule } from '../../shop/src/health.module.js';
import { publisherOf } from '../../shop/src/publisher.js';
import type { InventoryEnvironment } from './environment.js';
import { InventoryModule } from './inventory.module.js';

@Module({})
export class AppModule {
  static of({ databaseUrl, relay, ...kafka }: InventoryEnvironment): DynamicModule {
    return {
      module: AppModule,
      imports: [
        TypeOrmModule.forRoot({ ...databaseOptions(databaseUrl), autoLoadEntities: true }),
        OutboxModule.forRoot({
          publisher: publisherOf('inventory', kafka),
          relay: { enabled: relay },
        }),
        InventoryModule,
        HealthModule,
      ],
    };
  }
}
