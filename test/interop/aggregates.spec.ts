import { Injectable } from '@nestjs/common';
import { AggregateRoot } from '@nestjs/cqrs';
import { TypeOrmModule, InjectRepository } from '@nestjs/typeorm';
import { IsInt, Max } from 'class-validator';
import { EventCollector, type EventSource, OutboxEvent, Transactional, TransactionRunner } from 'nestjs-transactional-outbox';
import { Column, DataSource, Entity, PrimaryColumn, Repository } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { DATABASES } from '../setup/databases';

@OutboxEvent({ type: 'order.confirmed', topic: 'orders', key: (event: OrderConfirmed) => event.id })
class OrderConfirmed {
  @IsInt() id!: number;
  /** Too many are refused: by this a test makes an event that is not valid. */
  @IsInt() @Max(99) quantity!: number;
}

function confirmed(id: number, quantity = 1): OrderConfirmed {
  return Object.assign(new OrderConfirmed(), { id, quantity });
}

/** With the base class of @nestjs/cqrs. */
@Entity('cqrs_order')
class CqrsOrder extends AggregateRoot {
  @PrimaryColumn({ type: 'int' }) id!: number;
  @Column({ type: 'varchar', length: 20, default: '' }) state!: string;

  confirm(quantity?: number): this {
    this.state += 'c';
    this.apply(confirmed(this.id, quantity));
    return this;
  }
}

/** With the library's own. */
@Entity('own_order')
class OwnOrder extends EventCollector {
  @PrimaryColumn({ type: 'int' }) id!: number;
  @Column({ type: 'varchar', length: 20, default: '' }) state!: string;

  confirm(quantity?: number): this {
    this.state += 'c';
    this.record(confirmed(this.id, quantity));
    return this;
  }
}

type Order = EventSource & { id: number; state: string; confirm(quantity?: number): Order };

@Injectable()
class Orders {
  constructor(
    @InjectRepository(CqrsOrder) readonly cqrs: Repository<CqrsOrder>,
    @InjectRepository(OwnOrder) readonly own: Repository<OwnOrder>,
    readonly transactions: TransactionRunner,
    readonly dataSource: DataSource,
  ) {}

  @Transactional()
  async inTransaction(work: () => Promise<unknown>): Promise<void> {
    await work();
  }
}

const KINDS = [
  ['AggregateRoot of @nestjs/cqrs', CqrsOrder],
  ['EventCollector', OwnOrder],
] as const;

describe.each(DATABASES)('entities that collect their events on %s', (database) => {
  let app: TestApp;
  let orders: Orders;

  beforeAll(async () => {
    const entities = [CqrsOrder, OwnOrder];
    app = await startApp(database, { entities, providers: [Orders], imports: [TypeOrmModule.forFeature(entities)] });
    orders = app.app.get(Orders);
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    for (const table of ['cqrs_order', 'own_order', 'outbox_message', 'outbox_pending']) {
      await app.dataSource.query(`DELETE FROM ${table}`);
    }
  });

  describe.each(KINDS)('%s', (_name, kind) => {
    const repository = (): Repository<Order> => app.dataSource.getRepository<Order>(kind);
    const made = (id: number): Order => Object.assign(new kind(), { id, state: '' });
    const eventIds = async (): Promise<number[]> => (await app.logged()).map((event) => (event as { id: number }).id);
    const waiting = (order: Order): number => order.getUncommittedEvents().length;

    const ways: Record<string, (work: () => Promise<unknown>) => Promise<void>> = {
      'in @Transactional': (work) => orders.inTransaction(work),
      'in a nested part': (work) => orders.transactions.run(() => orders.transactions.run({ propagation: 'NESTED' }, async () => void (await work()))),
    };

    it.each(Object.keys(ways))('emits once for two saves %s', async (way) => {
      const order = made(1);
      await ways[way]?.(async () => {
        await repository().save(order.confirm());
        await repository().save(order.confirm());
      });
      expect(await eventIds()).toEqual([1, 1]);
      expect(waiting(order)).toBe(0);
      // Saved again with nothing new, it emits nothing.
      order.state = 'other';
      await repository().save(order);
      expect(await eventIds()).toEqual([1, 1]);
    });

    it('emits in a plain repository.save', async () => {
      const order = made(1).confirm();
      await repository().save(order);
      expect(await eventIds()).toEqual([1]);
      expect(waiting(order)).toBe(0);
    });

    it('emits in dataSource.transaction', async () => {
      const order = made(1).confirm();
      await app.dataSource.transaction((manager) => manager.save(order));
      expect(await eventIds()).toEqual([1]);
      expect(waiting(order)).toBe(0);
    });

    it('emits when it is removed', async () => {
      const order = await repository().save(made(1));
      await repository().remove(order.confirm());
      expect(await app.logged()).toHaveLength(1);
      expect(waiting(order)).toBe(0);
    });

    it('keeps the events after a rollback', async () => {
      const order = made(1).confirm();
      await expect(
        orders.inTransaction(async () => {
          await repository().save(order);
          throw new Error('no');
        }),
      ).rejects.toThrow('no');
      await expect(
        app.dataSource.transaction(async (manager) => {
          await manager.save(order);
          throw new Error('no');
        }),
      ).rejects.toThrow('no');
      expect(await repository().count()).toBe(0);
      expect(await eventIds()).toEqual([]);
      expect(waiting(order)).toBe(1);
      await repository().save(order);
      expect(await eventIds()).toEqual([1]);
    });

    it('keeps the events after a rollback to a savepoint', async () => {
      const order = made(1).confirm();
      await orders.inTransaction(async () => {
        await repository().save(made(2).confirm());
        await expect(
          orders.transactions.run({ propagation: 'NESTED' }, async () => {
            await repository().save(order);
            throw new Error('part');
          }),
        ).rejects.toThrow('part');
      });
      expect(await eventIds()).toEqual([2]);
      expect(waiting(order)).toBe(1);
    });

    it('undoes all when an event is not valid, and a second try does not slip through', async () => {
      const order = made(1).confirm(100);
      await expect(repository().save(order)).rejects.toMatchObject({ code: 'OUTBOX_EVENT_INVALID' });
      await expect(orders.inTransaction(() => repository().save(order))).rejects.toMatchObject({ code: 'OUTBOX_EVENT_INVALID' });
      const queryRunner = app.dataSource.createQueryRunner();
      await queryRunner.startTransaction();
      await queryRunner.manager.save(order);
      await expect(queryRunner.commitTransaction()).rejects.toMatchObject({ code: 'OUTBOX_EVENT_INVALID' });
      await expect(queryRunner.commitTransaction()).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_DOOMED' });
      await queryRunner.rollbackTransaction();
      await queryRunner.release();
      expect(await repository().count()).toBe(0);
      expect(await eventIds()).toEqual([]);
      expect(waiting(order)).toBe(1);
    });

    it('has committed the events of many before anybody can save them again', async () => {
      const many = Array.from({ length: 60 }, (_, id) => made(id).confirm());
      await app.dataSource.transaction((manager) => manager.save(many));
      expect(many.filter((order) => waiting(order) > 0)).toEqual([]);
      for (const order of many) order.state = 'again';
      await repository().save(many);
      expect(await eventIds()).toHaveLength(60);
    });

    it('has committed the events before the hooks of the commit run', async () => {
      const order = made(1).confirm();
      await orders.inTransaction(async () => {
        orders.transactions.afterCommit(async () => {
          order.state = 'hooked';
          await repository().save(order);
        });
        await repository().save(order);
      });
      expect(await eventIds()).toEqual([1]);
    });
  });
});
