import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { getDataSourceToken } from '@nestjs/typeorm';
import { Relay } from 'nestjs-transactional-outbox';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import type { DataSource } from 'typeorm';
import type { PlaceOrder } from '../../orders/src/place-order.dto.js';
import { DeclinedPayment } from './declined-payment.service.js';
import { DeliveryCounter } from './delivery-counter.controller.js';
import { DemoModule } from './demo.module.js';
import { Figures } from './figures.js';

export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** The running shop of the demo, as the story handles it. */
export class InMemoryShop {
  readonly relay: Relay;
  readonly deliveries: DeliveryCounter;
  readonly payment: DeclinedPayment;
  readonly figures: Figures;

  private constructor(
    readonly app: INestApplication,
    readonly broker: InMemoryBroker,
    readonly url: string,
  ) {
    this.relay = app.get(Relay);
    this.deliveries = app.get(DeliveryCounter);
    this.payment = app.get(DeclinedPayment);
    this.figures = new Figures(app.get<DataSource>(getDataSourceToken()), broker);
  }

  static async open(port: number): Promise<InMemoryShop> {
    const broker = new InMemoryBroker();
    // The story is told by the narrator; an app that cannot start throws and is not ended without a word.
    const app = await NestFactory.create(DemoModule.of(broker), { logger: false, abortOnError: false });
    app.connectMicroservice({ strategy: broker.server({ groupId: 'inventory' }) });
    await app.listen(port, '127.0.0.1');
    await app.startAllMicroservices();
    return new InMemoryShop(app, broker, await app.getUrl());
  }

  async post(request: Partial<PlaceOrder>): Promise<Answer> {
    const response = await fetch(`${this.url}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  close(): Promise<void> {
    return this.app.close();
  }
}
