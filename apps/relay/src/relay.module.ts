import { type DynamicModule, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboxModule } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { databaseOptions } from '../../shop/src/database.js';
import type { RelayEnvironment } from './environment.js';

/** Nothing but the relay: it needs the outbox's tables, and knows neither events nor entities. */
@Module({})
export class RelayModule {
  static of({ databaseUrl, brokers, relay }: RelayEnvironment): DynamicModule {
    return {
      module: RelayModule,
      imports: [
        TypeOrmModule.forRoot(databaseOptions(databaseUrl)),
        OutboxModule.forRoot({ publisher: kafkaPublisher({ clientId: 'relay', brokers: [...brokers] }), relay }),
      ],
    };
  }
}
