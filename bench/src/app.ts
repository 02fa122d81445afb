import { type DynamicModule, type INestApplicationContext, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Outbox, OutboxModule, type OutboxModuleOptions, type PublisherFactory, TransactionRunner } from 'nestjs-transactional-outbox';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { platformaticPublisher } from 'nestjs-transactional-outbox/platformatic';
import type { DataSourceOptions } from 'typeorm';
import type { ClientName } from './arguments.js';
import { type BenchEvent, makeEvent } from './event.js';

@Module({})
export class BenchModule {
  static of(database: DataSourceOptions, options: OutboxModuleOptions, poolSize: number): DynamicModule {
    return {
      module: BenchModule,
      imports: [
        TypeOrmModule.forRoot({ ...database, poolSize } as DataSourceOptions),
        OutboxModule.forRoot({ createTables: true, ...options }),
      ],
    };
  }
}

/** An app that writes and, unless the options say so, does not relay. */
export function openWriter(
  database: DataSourceOptions,
  options: Partial<OutboxModuleOptions> = {},
  poolSize = 10,
): Promise<INestApplicationContext> {
  const all = { publisher: new InMemoryBroker().publisher(), relay: { enabled: false }, retention: false, ...options } as const;
  return NestFactory.createApplicationContext(BenchModule.of(database, all, poolSize), { logger: ['error'], abortOnError: false });
}

export function publisherOf(client: ClientName, brokers: readonly string[]): PublisherFactory {
  return client === 'kafkajs'
    ? kafkaPublisher({ clientId: 'bench', brokers: [...brokers] })
    : platformaticPublisher({ clientId: 'bench', bootstrapBrokers: [...brokers] });
}

/** Events of one transaction that fills the outbox. */
const CHUNK = 1000;

/** Emits that many events, as an app would that has much to say. */
export async function fill(app: INestApplicationContext, type: Type<BenchEvent>, count: number, first = 0): Promise<void> {
  const outbox = app.get(Outbox);
  const transactions = app.get(TransactionRunner);
  for (let start = 0; start < count; start += CHUNK) {
    const events = Array.from({ length: Math.min(CHUNK, count - start) }, (_, index) => makeEvent(type, first + start + index));
    await transactions.run(async () => outbox.emit(events));
  }
}
