import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboxModule } from 'nestjs-transactional-outbox';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import request from 'supertest';
import { DataSource } from 'typeorm';
import { vi } from 'vitest';
import { InventoryModule } from '../../apps/inventory/src/inventory.module.js';
import { OrdersModule } from '../../apps/orders/src/orders.module.js';
import { HealthModule } from '../../apps/shop/src/health.module.js';
import { PATIENT } from './patience';

/** The modules of the sample apps in one process, with nothing from outside. */
export class TestShop {
  private constructor(
    readonly app: INestApplication,
    readonly broker: InMemoryBroker,
    readonly dataSource: DataSource,
  ) {}

  static async open(broker = new InMemoryBroker()): Promise<TestShop> {
    const moduleRef = await Test.createTestingModule({
      imports: [
        TypeOrmModule.forRoot({ type: 'better-sqlite3', database: ':memory:', autoLoadEntities: true, synchronize: true }),
        OutboxModule.forRoot({ publisher: broker.publisher(), createTables: true, relay: { retryDelay: 50 } }),
        OrdersModule,
        InventoryModule,
        HealthModule,
      ],
    })
      .setLogger({ log: () => undefined, warn: () => undefined, error: () => undefined })
      .compile();
    const app = moduleRef.createNestApplication();
    app.connectMicroservice({ strategy: broker.server({ groupId: 'inventory' }) });
    await app.init();
    await app.startAllMicroservices();
    return new TestShop(app, broker, app.get(DataSource));
  }

  http() {
    return request(this.app.getHttpServer());
  }

  /** Places a valid order; resolves to its id. */
  async place(productId: string, quantity: number): Promise<string> {
    const { body } = await this.http().post('/orders').send({ productId, quantity }).expect(201);
    return (body as { id: string }).id;
  }

  async count(table: 'orders' | 'outbox_message' | 'outbox_pending' | 'reservation'): Promise<number> {
    const rows = (await this.dataSource.query(`SELECT COUNT(*) AS count FROM ${table}`)) as { count: number }[];
    return Number(rows[0]?.count);
  }

  /** Until everything is sent and handled. */
  async settled(): Promise<void> {
    const sent = async (): Promise<boolean> => {
      await this.broker.idle();
      return (await this.count('outbox_pending')) === 0;
    };
    await vi.waitUntil(sent, PATIENT);
    await this.broker.idle();
  }

  close(): Promise<void> {
    return this.app.close();
  }
}
