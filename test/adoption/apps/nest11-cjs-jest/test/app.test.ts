import { Controller, INestApplication, Injectable } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { Ctx, EventPattern, KafkaContext, Payload } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { getRepositoryToken } from '@nestjs/typeorm';
import { IdempotentConsumer, IdempotentRunner, Outbox, OutboxHealth, Relay, TransactionRunner } from 'nestjs-transactional-outbox';
import { InMemoryBroker, InMemoryServer } from 'nestjs-transactional-outbox/in-memory';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { setTimeout as sleep } from 'timers/promises';
import { DataSource, Repository } from 'typeorm';
import { AppModule } from '../src/app.module';
import { AuditEntry } from '../src/audit-entry.entity';
import { journal } from '../src/journaled.decorator';
import { OrderCreated } from '../src/order-created.event';
import { Order } from '../src/order.entity';
import { OrdersService } from '../src/orders.service';
import { Reservation } from '../src/reservation.entity';
import { StockController } from '../src/stock.controller';

@Injectable()
class Operator {
  constructor(
    readonly outbox: Outbox,
    readonly relay: Relay,
    readonly health: OutboxHealth,
  ) {}
}

/** Handlers with every choice of parameters. */
@Controller()
class ParametersController {
  readonly calls: Record<string, unknown[]> = {};

  @EventPattern('numbers')
  @IdempotentConsumer('payload')
  async payload(@Payload() value: unknown): Promise<void> {
    this.called('payload', value);
  }

  @EventPattern('numbers')
  @IdempotentConsumer('context')
  async context(@Ctx() context: KafkaContext): Promise<void> {
    this.called('context', context.getMessage().value);
  }

  @EventPattern('numbers')
  @IdempotentConsumer('both')
  async both(@Payload() value: unknown, @Ctx() context: KafkaContext): Promise<void> {
    this.called('both', [value, context.getTopic()]);
  }

  @EventPattern('numbers')
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

/** Waits until both consumers have had `total` orders. */
async function handled(total: number): Promise<void> {
  while ((await count('consumed_message')) < 2 * total) await sleep(10);
  await broker.idle();
}

beforeEach(async () => {
  journal.length = 0;
  broker = new InMemoryBroker();
  const module = await Test.createTestingModule({
    imports: [AppModule.with(broker.publisher())],
    providers: [Operator],
    controllers: [ParametersController],
  }).compile();
  module.useLogger(false);
  app = module.createNestApplication();
  app.connectMicroservice({ strategy: broker.server({ groupId: 'shop' }) });
  await app.startAllMicroservices();
  await app.listen(0);
  orders = app.get(getRepositoryToken(Order));
  reservations = app.get(getRepositoryToken(Reservation));
});

afterEach(() => app.close());

it('stores the order, publishes the event and hands it to the handler as an instance of its class', async () => {
  const order = await app.get(OrdersService).place('tea', 2);

  await handled(1);
  expect(await reservations.find()).toEqual([{ id: 1, orderId: order.id, summary: '2 × tea' }]);
  const { calls } = app.get(StockController);
  expect(calls).toEqual([{ orderId: order.id, sku: 'tea', quantity: 2 }]);
  expect(calls[0]).toBeInstanceOf(OrderCreated);
  const records = broker.records('orders');
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({ key: order.id, headers: { event_type: 'order.created' } });
  expect(await orders.countBy({ id: order.id })).toBe(1);
});

it('leaves no row and no event of a method that fails', async () => {
  await expect(app.get(OrdersService).placeAndFail('coffee')).rejects.toThrow('changed their mind');
  await expect(app.get(OrdersService).place('milk', 0)).rejects.toMatchObject({ code: 'OUTBOX_EVENT_INVALID' });

  const { id } = await app.get(OrdersService).place('tea', 1);
  await handled(1);
  expect(await orders.find()).toEqual([{ id, sku: 'tea', quantity: 1 }]);
  expect(await count('outbox_message')).toBe(1);
  expect(broker.records('orders').map((record) => record.key)).toEqual([id]);
});

it('has no second effect when a message comes again', async () => {
  await app.get(OrdersService).place('tea', 3);
  await handled(1);

  expect(broker.redeliver('orders', () => true)).toBe(1);
  await broker.idle();
  expect(app.get(StockController).calls).toHaveLength(1);
  expect(await reservations.count()).toBe(1);
  expect(await count('consumed_message')).toBe(2);
});

it('runs handlers of request-scoped controllers beside others of the same topic', async () => {
  await app.get(OrdersService).place('tea', 3);
  await handled(1);

  broker.redeliver('orders', () => true);
  await broker.idle();
  expect((await AuditEntry.find()).map((entry) => entry.text)).toEqual(['mail for 3 × tea from orders']);
});

it('leaves home-made decorators in their places', async () => {
  await app.get(OrdersService).place('tea', 1);

  expect(journal).toEqual([
    'outside place',
    'between place',
    'inside place',
    'place inside',
    'place between',
    'place outside',
  ]);
  expect(await count('outbox_message')).toBe(1);
});

it.each(['cart.closed', 'cart.given'])('lets listeners be found by their metadata: %s', async (name) => {
  await app.get(EventEmitter2).emitAsync(name, { sku: 'tea' });

  expect(await orders.count()).toBe(1);
  expect(await count('outbox_message')).toBe(1);
});

it('draws request-scoped services and static entity methods into the transaction', async () => {
  const checkout = async (customer: string): Promise<number> => {
    const response = await fetch(`${await app.getUrl()}/checkout`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-customer': customer },
      body: JSON.stringify({ sku: 'tea' }),
    });
    return response.status;
  };

  expect([await checkout('ann'), await checkout('bob'), await checkout('ann')]).toEqual([201, 201, 409]);
  await handled(2);
  expect(await orders.count()).toBe(2);
  expect(await count('outbox_message')).toBe(2);
  expect([await AuditEntry.countBy({ text: 'ann' }), await AuditEntry.countBy({ text: 'bob' })]).toEqual([1, 1]);
});

it('knows the classes of the library by identity', () => {
  for (const type of [Outbox, Relay, OutboxHealth, TransactionRunner, IdempotentRunner]) {
    expect(app.get<object>(type)).toBeInstanceOf(type);
  }
  const operator = app.get(Operator);
  expect(operator.outbox).toBe(app.get(Outbox));
  expect(operator.relay).toBe(app.get(Relay));
  expect(operator.health).toBe(app.get(OutboxHealth));
  expect(broker.server({ groupId: 'another' })).toBeInstanceOf(InMemoryServer);
});

it('has the Kafka publisher at its own entry', () => {
  expect(typeof kafkaPublisher({ clientId: 'orders', brokers: ['localhost:9092'] })).toBe('function');
});

it('finds the id of a message whatever parameters its handler has', async () => {
  await app.get(TransactionRunner).run(async () => {
    app.get(Outbox).emitRaw({ topic: 'numbers', type: 'number', payload: '{"n":1}' });
  });
  while (broker.records('numbers').length === 0) await sleep(10);
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
