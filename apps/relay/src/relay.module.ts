import { type DynamicModule, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboxModule } from 'nestjs-transactional-outbox';
import { databaseOptions } from '../../shop/src/database.js';
import { publisherOf } from '../../shop/src/publisher.js';
import type { RelayEnvironment } from './environment.js';

/** Nothing but the relay: it needs the outbox's tables, and knows neither events nor entities. */
@Module({})
export class RelayModule {
  static of({ databaseUrl, relay, ...kafka }: RelayEnvironment): DynamicModule {
    return {
      module: RelayModule,
      imports: [
        TypeOrmModule.forRoot(databaseOptions(databaseUrl)),
        OutboxModule.forRoot({ publisher: publisherOf('relay', kafka), relay }),
      ],
    };
  }
}
