import 'reflect-metadata';
import { connect } from 'node:net';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboxModule, Relay } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { prometheusMetrics } from 'nestjs-transactional-outbox/prometheus';
import { Registry } from 'prom-client';
import { childConfig, placeIndex, RELAY_OPTIONS, tell } from './child-config.js';
import { FiguresTeller } from './figures-teller.js';

/** A standalone relay, whose roads to the database and to the broker lead through proxies. */
const config = childConfig();
const { broker, brokerProxy } = config;
const registry = new Registry();
const figures = new FiguresTeller(registry);

@Module({
  imports: [
    TypeOrmModule.forRoot({ ...config.database, retryDelay: 300, retryAttempts: 300 }),
    OutboxModule.forRoot({
      publisher: kafkaPublisher({
        clientId: config.name,
        brokers: [`${broker.host}:${broker.port}`],
        // Both kinds of producer, each at every second relay.
        idempotent: placeIndex(config.name) % 2 === 1,
        // Wherever the broker says that it is, this relay goes through its proxy.
        socketFactory: ({ host, port, onConnect }) => connect(brokerProxy ?? { host, port }, onConnect),
      }),
      order: config.order,
      relay: { ...RELAY_OPTIONS, settle: config.settle },
      metrics: prometheusMetrics({ registry }),
    }),
  ],
})
class RelayModule {}

process.on('disconnect', () => process.exit(1));
const app = await NestFactory.createApplicationContext(RelayModule, { logger: ['error', 'warn', 'log'] });
app.enableShutdownHooks();
app.get(Relay).on('held', ({ message, error }) => console.log(`held ${message.messageId}: ${error}`));
// The counters have moved before these are told.
for (const event of ['published', 'settled', 'held', 'parked', 'laneLost'] as const) app.get(Relay).on(event, () => void figures.count());
tell({ type: 'ready' });
