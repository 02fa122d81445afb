import 'reflect-metadata';
import { Controller, Inject, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventPattern, type KafkaOptions, Payload, Transport } from '@nestjs/microservices';
import { InjectDataSource, TypeOrmModule } from '@nestjs/typeorm';
import { ConsumerEvents, IdempotentConsumer, OutboxModule } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { prometheusMetrics } from 'nestjs-transactional-outbox/prometheus';
import { Registry } from 'prom-client';
import { DataSource } from 'typeorm';
import { childConfig, CONSUMER, tell } from './child-config.js';
import { TOPICS } from './events.js';
import { FiguresTeller } from './figures-teller.js';
import { Random, seedOf } from './random.js';

/** A consumer that writes one row for each message that it handles, and fails now and then. */
const config = childConfig();
const brokers = [`${config.broker.host}:${config.broker.port}`];
const random = new Random(seedOf(config.seed, config.name));
const RANDOM = Symbol('random');
const registry = new Registry();
const figures = new FiguresTeller(registry);

@Controller()
class EffectsController {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(RANDOM) private readonly chance: Random,
  ) {}

  @EventPattern(TOPICS.moves.name)
  @IdempotentConsumer(`${CONSUMER}.moves`)
  async move(@Payload() payload: { eventId: string }): Promise<void> {
    await this.act(payload.eventId);
  }

  @EventPattern(TOPICS.notes.name)
  @IdempotentConsumer(`${CONSUMER}.notes`)
  async note(@Payload() payload: { eventId: string }): Promise<void> {
    await this.act(payload.eventId);
  }

  @EventPattern(TOPICS.sights.name)
  @IdempotentConsumer(`${CONSUMER}.sights`)
  async see(@Payload() payload: { eventId: string }): Promise<void> {
    await this.act(payload.eventId);
  }

  private async act(eventId: string): Promise<void> {
    const [one, two] = this.dataSource.options.type === 'postgres' ? ['$1', '$2'] : ['?', '?'];
    await this.dataSource.query(`INSERT INTO effect (consumer, event_id) VALUES (${one}, ${two})`, [CONSUMER, eventId]);
    if (this.chance.chance(0.005)) throw new Error(`the handler fails for ${eventId}, this time`);
  }
}

@Module({
  imports: [
    TypeOrmModule.forRoot({ ...config.database, retryDelay: 300, retryAttempts: 300 }),
    OutboxModule.forRoot({
      publisher: kafkaPublisher({ clientId: config.name, brokers }),
      order: config.order,
      relay: { enabled: false },
      metrics: prometheusMetrics({ registry }),
    }),
  ],
  controllers: [EffectsController],
  providers: [{ provide: RANDOM, useValue: random }],
})
class ConsumerModule {}

process.on('disconnect', () => process.exit(1));
const options: KafkaOptions = {
  transport: Transport.KAFKA,
  options: {
    client: { clientId: config.name, brokers, retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: 1000 } },
    consumer: { groupId: 'chaos', sessionTimeout: 6500, rebalanceTimeout: 8000, heartbeatInterval: 500 },
    subscribe: { fromBeginning: true },
    run: { partitionsConsumedConcurrently: 6 },
  },
};
const app = await NestFactory.createMicroservice(ConsumerModule, { ...options, logger: ['error', 'warn'] });
app.enableShutdownHooks();
app.get(ConsumerEvents).subscribe(() => void figures.count());
await app.listen();
tell({ type: 'ready' });
