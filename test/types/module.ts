/** Checked by the compiler alone: what must not compile stands under `@ts-expect-error`. */
import { EventCollector, OutboxModule, type PublisherFactory, route } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import type { DataSource } from 'typeorm';

declare const publisher: PublisherFactory;
declare const dataSource: DataSource;

/** All of this is right. */
export const right = [
  OutboxModule.forRoot({ publisher }),
  OutboxModule.forRoot({
    publisher,
    dataSource: 'audit',
    createTables: true,
    order: 'none',
    lanes: 8,
    tables: { message: 'my_outbox' },
    maxMessageBytes: 1000,
    context: () => ({ tenantId: 't', headers: { a: 'b' } }),
    ambientManager: () => dataSource.manager,
    relay: { enabled: false },
    retention: { sent: 86_400_000, dead: false, mode: 'archive' },
  }),
  OutboxModule.forRoot({ publisher, retention: { mode: 'partition', sent: 86_400_000, dead: 86_400_000, ahead: 5 } }),
  OutboxModule.forRootAsync({ useFactory: () => ({ publisher }) }),
  OutboxModule.forRoot({ publisher: route([{ name: 'a', topics: [/^a/, 'b'], publisher }, { publisher }]), cloudEvents: { source: '/orders' } }),
  OutboxModule.forRootAsync({ inject: ['URL'], useFactory: async (_url: string) => ({ publisher, order: 'commit' as const }) }),
];

export const wrong = [
  // @ts-expect-error the publisher is missing
  OutboxModule.forRoot({}),
  // @ts-expect-error unknown option
  OutboxModule.forRoot({ publisher, retries: 5 }),
  // @ts-expect-error no such order
  OutboxModule.forRoot({ publisher, order: 'insert' }),
  // @ts-expect-error unknown table
  OutboxModule.forRoot({ publisher, tables: { queue: 'q' } }),
  // @ts-expect-error unknown option of the relay
  OutboxModule.forRoot({ publisher, relay: { polling: 5 } }),
  // @ts-expect-error retention is in milliseconds
  OutboxModule.forRoot({ publisher, retention: { sent: '7d' } }),
  // @ts-expect-error partitions are dropped by an age
  OutboxModule.forRoot({ publisher, retention: { mode: 'partition', sent: false } }),
  // @ts-expect-error only partitions are made ahead
  OutboxModule.forRoot({ publisher, retention: { mode: 'archive', ahead: 5 } }),
  // @ts-expect-error and only in their mode
  OutboxModule.forRoot({ publisher, retention: { ahead: 5 } }),
  // @ts-expect-error the module takes the log as the migration has made it
  OutboxModule.forRoot({ publisher, partitioned: true }),
  // @ts-expect-error retention is on by default
  OutboxModule.forRoot({ publisher, retention: true }),
  OutboxModule.forRoot({
    // @ts-expect-error topics are names or patterns
    publisher: route([{ topics: (topic: string) => topic === 'orders', publisher }]),
  }),
  // @ts-expect-error a route needs its publisher
  OutboxModule.forRoot({ publisher: route([{ topics: 'orders' }]) }),
  // @ts-expect-error CloudEvents need a source
  OutboxModule.forRoot({ publisher, cloudEvents: {} }),
  // @ts-expect-error settings of a topic are text
  kafkaPublisher({ brokers: ['kafka:9092'], topics: [{ topic: 'orders', config: { 'retention.ms': 1 } }] }),
  // @ts-expect-error not a publisher
  OutboxModule.forRoot({ publisher: 'kafka://localhost' }),
  // @ts-expect-error the context has no such part
  OutboxModule.forRoot({ publisher, context: () => ({ tenant: 't' }) }),
  // @ts-expect-error a context cannot be waited for
  OutboxModule.forRoot({ publisher, context: async () => ({ tenantId: 't' }) }),
  // @ts-expect-error the publisher is missing
  OutboxModule.forRootAsync({ useFactory: () => ({ order: 'commit' as const }) }),
  // @ts-expect-error the factory is missing
  OutboxModule.forRootAsync({ inject: [] }),
];

export class Account extends EventCollector {
  close(): void {
    this.record(new Date());
    // @ts-expect-error not an object
    this.record('closed');
  }
}

// @ts-expect-error only the entity itself records
new Account().record(new Date());
