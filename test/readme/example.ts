import 'reflect-metadata';
import { Controller, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventPattern, Payload } from '@nestjs/microservices';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { IsInt, IsUUID, Min } from 'class-validator';
import { EmitsEvent, IdempotentConsumer, OutboxEvent, OutboxModule, Transactional } from 'nestjs-transactional-outbox';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { Column, Entity, PrimaryColumn, PrimaryGeneratedColumn, Repository } from 'typeorm';

// The event: a class with a stable type name, a topic, a key that keeps order, and rules.
@OutboxEvent({ type: 'order.created', topic: 'orders', key: (event: OrderCreated) => event.orderId })
export class OrderCreated {
  @IsUUID() orderId!: string;
  @IsInt() @Min(1) quantity!: number;
}

@Entity()
export class Order {
  @PrimaryGeneratedColumn('uuid') id!: string;
  @Column({ type: 'int' }) quantity!: number;
}

@Entity()
export class Stock {
  @PrimaryColumn({ type: 'varchar' }) product!: string;
  @Column({ type: 'int' }) reserved!: number;
}

// The sender: the row and the event commit together, or not at all.
@Injectable()
export class OrdersService {
  constructor(@InjectRepository(Order) private readonly orders: Repository<Order>) {}

  @Transactional()
  @EmitsEvent(OrderCreated, (order: Order) => ({ orderId: order.id, quantity: order.quantity }))
  async place(quantity: number): Promise<Order> {
    return this.orders.save(this.orders.create({ quantity }));
  }
}

// The receiver: a repeated message has no second effect.
@Controller()
export class StockController {
  constructor(@InjectRepository(Stock) private readonly stock: Repository<Stock>) {}

  @EventPattern('orders')
  @IdempotentConsumer('stock.reserve', { events: [OrderCreated] })
  async reserve(@Payload() event: OrderCreated): Promise<void> {
    await this.stock.increment({ product: 'chair' }, 'reserved', event.quantity);
  }
}

export const broker = new InMemoryBroker();

@Module({
  imports: [
    TypeOrmModule.forRoot({ type: 'better-sqlite3', database: ':memory:', entities: [Order, Stock], synchronize: true }),
    TypeOrmModule.forFeature([Order, Stock]),
    OutboxModule.forRoot({ publisher: broker.publisher(), createTables: true }),
  ],
  providers: [OrdersService],
  controllers: [StockController],
})
export class AppModule {}

export async function bootstrap() {
  const app = await NestFactory.create(AppModule);
  app.connectMicroservice({ strategy: broker.server({ groupId: 'stock' }) });
  await app.startAllMicroservices();
  return app.init();
}
