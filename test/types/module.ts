/** Checked by the compiler alone: what must not compile stands under `@ts-expect-error`. */
import { EventCollector, OutboxModule, type PublisherFactory } from 'nestjs-transactional-outbox';
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
  OutboxModule.forRootAsync({ useFactory: () => ({ publisher }) }),
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
  // @ts-expect-error retention is on by default
  OutboxModule.forRoot({ publisher, retention: true }),
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
