import { NestFactory } from '@nestjs/core';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { setTimeout as sleep } from 'timers/promises';
import { DataSource } from 'typeorm';
import { AppModule } from './app.module';
import { OrdersService } from './orders.service';
import { Reservation } from './reservation.entity';

/** The app as it runs outside of any test: plain Node on compiled files. */
async function main(): Promise<void> {
  const broker = new InMemoryBroker();
  const app = await NestFactory.create(AppModule.with(broker.publisher()), { logger: ['error', 'warn'] });
  app.connectMicroservice({ strategy: broker.server({ groupId: 'inventory' }) });
  await app.startAllMicroservices();
  await app.init();
  const order = await app.get(OrdersService).place('tea', 2);
  const reservations = app.get(DataSource).getRepository(Reservation);
  while ((await reservations.countBy({ orderId: order.id })) === 0) await sleep(10);
  await app.close();
  console.log('order reserved');
}

void main();
