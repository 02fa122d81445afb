import { Controller, Inject, Injectable, type INestApplication } from '@nestjs/common';
import { Ctx, EventPattern, KafkaContext, Payload } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { getRepositoryToken } from '@nestjs/typeorm';
import { IdempotentConsumer, IdempotentRunner, Outbox, OutboxHealth, Relay, TransactionRunner } from 'nestjs-transactional-outbox';
import { InMemoryBroker, InMemoryServer } from 'nestjs-transactional-outbox/in-memory';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { DataSource, type Repository } from 'typeorm';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { AppModule } from '../src/app.module.js';
import { OrderCreated } from '../src/order-created.event.js';
import { Order } from '../src/order.entity.js';
import { OrdersService } from '../src/orders.service.js';
import { Reservation } from '../src/reservation.entity.js';
import { StockController } from '../src/stock.controller.js';

@Injectable()
class Operator {
  constructor(
    readonly outbox: Outbox,
    readonly relay: Relay,
    @Inject(OutboxHealth) readonly health: OutboxHealth,
  ) {}
}

/** Handlers with every choice of parameters. */
@Controller()
class ParametersController {
  readonly calls: Record<string, unknown[]> = {};

  @EventPattern<string>('numbers')
  @IdempotentConsumer('payload')
  async payload(@Payload() value: unknown): Promise<void> {
    this.called('payload', value);
  }

  @EventPattern<string>('numbers')
  @IdempotentConsumer('context')
  async context(@Ctx() context: KafkaContext): Promise<void> {
    this.called('context', context.getMessage().value);
  }

  @EventPattern<string>('numbers')
  @IdempotentConsumer('both')
  async both(@Payload() value: unknown, @Ctx() context: KafkaContext): Promise<void> {
    this.called('both', [value, context.getTopic()]);
  }

  @EventPattern<string>('numbers')
  @IdempotentConsumer('none')
  async none(): Promise<void> {
    this.called('none', undefined);
  }

  private called(name: string, what: unknown): void {
    this.calls[name] = [...(this.calls[name] ?? []), what];
  }
}

let broker: InMemoryBroker;
let app: INestApplication;
let orders: Repository<Order>;
let reservations: Repository<Reservation>;

const count = async (table: string): Promise<number> =>
  Number((await app.get(DataSource).query(`SELECT COUNT(*) AS n FROM ${table}`))[0].n);

beforeEach(async () => {
  broker = new InMemoryBroker();
  const module = await Test.createTestingModule({
    imports: [AppModule.with(broker.publisher())],
    providers: [Operator],
    controllers: [ParametersController],
  }).compile();
  app = module.createNestApplication();
  app.connectMicroservice({ strategy: broker.server({ groupId: 'inventory' }) });
  await app.startAllMicroservices();
  await app.init();
  orders = app.get(getRepositoryToken(Order));
  reservations = app.get(getRepositoryToken(Reservation));
});

afterEach(() => app.close());

it('stores the order, publishes the event and hands it to the handler as an instance of its class', async () => {
  const order = await app.get(OrdersService).place('tea', 2);

  await expect.poll(() => reservations.find()).toEqual([{ id: 1, orderId: order.id, summary: '2 × tea' }]);
  const [call, ...others] = app.get(StockController).calls;
  expect(others).toEqual([]);
  expect(call).toBeInstanceOf(OrderCreated);
  expect(call).toEqual({ orderId: order.id, sku: 'tea', quantity: 2 });
  const [record, ...more] = broker.records('orders');
  expect(more).toEqual([]);
  expect(record).toMatchObject({ key: order.id, headers: { event_type: 'order.created' } });
  expect(await orders.countBy({ id: order.id })).toBe(1);
});

it('leaves no row and no event of a method that fails', async () => {
  await expect(app.get(OrdersService).placeAndFail('coffee')).rejects.toThrow('changed their mind');
  await expect(app.get(OrdersService).place('milk', 0)).rejects.toMatchObject({ code: 'OUTBOX_EVENT_INVALID' });

  const { id } = await app.get(OrdersService).place('tea', 1);
  await expect.poll(() => reservations.count()).toBe(1);
  expect(await orders.find()).toEqual([{ id, sku: 'tea', quantity: 1 }]);
  expect(await count('outbox_message')).toBe(1);
  expect(broker.records('orders').map((record) => record.key)).toEqual([id]);
});

it('has no second effect when a message comes again', async () => {
  await app.get(OrdersService).place('tea', 3);
  await expect.poll(() => reservations.count()).toBe(1);

  expect(broker.redeliver('orders', () => true)).toBe(1);
  await broker.idle();
  expect(app.get(StockController).calls).toHaveLength(1);
  expect(await reservations.count()).toBe(1);
  expect(await count('consumed_message')).toBe(1);
});

it('knows the classes of the library and of Nest by identity', () => {
  for (const type of [Outbox, Relay, OutboxHealth, TransactionRunner, IdempotentRunner]) {
    expect(app.get(type)).toBeInstanceOf(type);
  }
  const operator = app.get(Operator);
  expect([operator.outbox, operator.relay, operator.health]).toEqual([
    app.get(Outbox),
    app.get(Relay),
    app.get(OutboxHealth),
  ]);
  expect(broker.server({ groupId: 'another' })).toBeInstanceOf(InMemoryServer);
});

it('has the Kafka publisher at its own entry', () => {
  expect(kafkaPublisher({ clientId: 'orders', brokers: ['localhost:9092'] })).toBeTypeOf('function');
});

it('finds the id of a message whatever parameters its handler has', async () => {
  await app.get(TransactionRunner).run(async () => {
    app.get(Outbox).emitRaw({ topic: 'numbers', type: 'number', payload: '{"n":1}' });
  });
  await expect.poll(() => broker.records('numbers')).toHaveLength(1);
  await broker.idle();
  expect(broker.redeliver('numbers', () => true)).toBe(1);
  await broker.idle();
  const value = { n: 1 };
  expect(app.get(ParametersController).calls).toEqual({
    payload: [value],
    context: [value],
    both: [[value, 'numbers']],
    none: [undefined],
  });
});
