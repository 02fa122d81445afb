import type { DynamicModule, INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { outboxMigrations } from 'nestjs-transactional-outbox';
import request from 'supertest';
import { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { AppModule as InventoryApp } from '../../apps/inventory/src/app.module.js';
import { kafkaServer } from '../../apps/inventory/src/kafka-server.js';
import { AppModule as OrdersApp } from '../../apps/orders/src/app.module.js';
import { CreateShopTables1764633600000 } from '../../apps/shop/src/create-shop-tables.migration.js';
import { createTopics } from '../../apps/shop/src/create-topics.js';
import { databaseOptions } from '../../apps/shop/src/database.js';
import { ORDERS_DEAD_LETTERS, Topics } from '../../apps/shop/src/topics.js';
import { KafkaBroker } from '../publish/kafka-broker';
import { SERVERS } from '../setup/databases';
import { freshDatabaseUrl } from './database-url';
import { PATIENT } from './patience';

// Before the apps are imported: topics that no other test has.
vi.hoisted(() => {
  process.env['TOPIC_PREFIX'] = `e2e-${Date.now().toString(36)}-`;
});

const ORDERS = 20;
const NOBODY = '127.0.0.1:1';
const SILENT = { log: () => undefined, warn: () => undefined, error: () => undefined };

const ends: (() => Promise<unknown>)[] = [];
const kafka = new KafkaBroker((process.env['OUTBOX_KAFKA_BROKERS'] ?? '').split(','));

beforeAll(async () => {
  await kafka.connect();
  await createTopics('end-to-end', kafka.brokers);
});
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});
afterAll(async () => {
  // kafkajs may report as unknown a topic that its own first try has deleted.
  for (const topic of [...Object.values(Topics), ORDERS_DEAD_LETTERS]) await kafka.deleteTopic(topic).catch(() => undefined);
  await kafka.close();
});

async function migratedDatabase(name: (typeof SERVERS)[number]): Promise<string> {
  const { url, drop } = await freshDatabaseUrl(name);
  ends.push(drop);
  const migrations = [...outboxMigrations(), CreateShopTables1764633600000];
  const dataSource = await new DataSource({ ...databaseOptions(url), migrations }).initialize();
  await dataSource.runMigrations();
  await dataSource.destroy();
  return url;
}

async function startApp(module: DynamicModule, brokers: readonly string[] = []): Promise<INestApplication> {
  const app = (await Test.createTestingModule({ imports: [module] }).setLogger(SILENT).compile()).createNestApplication();
  if (brokers.length > 0) app.connectMicroservice(kafkaServer(brokers));
  await app.init();
  ends.push(() => app.close());
  await app.startAllMicroservices();
  return app;
}

interface Stock {
  readonly orderId: string;
  readonly quantity: number;
  readonly available: number;
}

it.each(SERVERS)('from HTTP over %s and Kafka to the stock: each order once, each key in order', async (name) => {
  const environment = { port: 0, databaseUrl: await migratedDatabase(name), brokers: kafka.brokers, relay: true };
  // Each client publishes what the other one's service consumes.
  const inventory = await startApp(InventoryApp.of({ ...environment, kafkaClient: 'kafkajs' }), kafka.brokers);
  const orders = await startApp(OrdersApp.of({ ...environment, kafkaClient: 'platformatic' }));
  const post = (quantity: number) => request(orders.getHttpServer()).post('/orders').send({ productId: 'tea', quantity });

  const answers = await Promise.all(Array.from({ length: ORDERS }, (_, index) => post((index % 3) + 1)));
  await Promise.all([post(0).expect(400), post(-1).expect(400)]);
  const placed = new Map(answers.map(({ body }) => [(body as { id: string }).id, body as { quantity: number }]));
  expect(placed.size).toBe(ORDERS);

  const dataSource = inventory.get(DataSource);
  const count = async (table: string): Promise<number> => {
    const [row] = await dataSource.query<{ count: string }[]>(`SELECT COUNT(*) AS count FROM ${table}`);
    return Number(row?.count);
  };
  await expect.poll(() => count('reservation'), PATIENT).toBe(ORDERS);
  await expect.poll(() => count('outbox_pending'), PATIENT).toBe(0);

  const created = (await kafka.read(Topics.orders)).filter(({ key }) => placed.has(key ?? ''));
  expect(created.map(({ key }) => key).sort()).toEqual([...placed.keys()].sort());

  const reserved = (await kafka.read(Topics.stock))
    .map(({ value }) => JSON.parse(value ?? '') as Stock)
    .filter(({ orderId }) => placed.has(orderId));
  let left = 1000;
  for (const { quantity, available } of reserved) expect(available).toBe((left -= quantity));
  expect(reserved).toHaveLength(ORDERS);
  const { body } = await request(inventory.getHttpServer()).get('/stock').expect(200);
  expect(body).toContainEqual({ productId: 'tea', available: left, reserved: 1000 - left });
});

describe('Kafka away at boot', () => {
  it.each(['kafkajs', 'platformatic'] as const)('orders starts, takes orders and says that they wait (%s)', async (kafkaClient) => {
    const databaseUrl = await migratedDatabase('mysql');
    const orders = await startApp(OrdersApp.of({ port: 0, databaseUrl, brokers: [NOBODY], kafkaClient, relay: true }));
    await request(orders.getHttpServer()).post('/orders').send({ productId: 'tea', quantity: 1 }).expect(201);
    const health = () => request(orders.getHttpServer()).get('/health').expect(200);
    await expect.poll(async () => (await health()).body as unknown, PATIENT).toMatchObject({
      status: 'degraded',
      backlog: { pending: 1 },
      relay: { running: true, trouble: { stage: 'broker' } },
    });
  });
});
