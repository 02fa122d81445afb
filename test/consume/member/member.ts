import 'reflect-metadata';
import { setTimeout } from 'node:timers/promises';
import { Controller, type INestMicroservice, Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Ctx, EventPattern, type MicroserviceOptions, Payload } from '@nestjs/microservices';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import {
  type BatchMessage,
  EmitsEvent,
  IdempotentBatchConsumer,
  IdempotentConsumer,
  Outbox,
  OutboxModule,
  Transactional,
  TransactionRunner,
  withMessageContext,
} from 'nestjs-transactional-outbox';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { KafkaBatchServer } from 'nestjs-transactional-outbox/kafka-batch';
import { type DataSourceOptions, Repository } from 'typeorm';
import { Note, NoteWritten } from '../../setup/notes';
import { KafkaSide } from '../kafka-side';
import { Effect } from './effect.entity';

/** One database, topic and group that a member serves. */
export interface Duty {
  readonly database: DataSourceOptions;
  readonly topic: string;
  readonly group: string;
  /** Whether the messages are handled in batches. Default: one by one. */
  readonly isBatch?: boolean;
  /** How long a handler takes, in milliseconds. Default: something up to 20. */
  readonly work?: number;
  /** The process dies when the first handler has committed, before Kafka can be told. */
  readonly diesAfterCommit?: boolean;
}

/** Runs consumers until the process is killed. */
export async function serve(duties: readonly Duty[]): Promise<INestMicroservice[]> {
  Logger.overrideLogger(false);
  const apps = await Promise.all(duties.map(start));
  for (const app of apps) app.enableShutdownHooks();
  await Promise.all(apps.map((app) => app.listen()));
  return apps;
}

function start({ database, topic, group, work, isBatch = false, diesAfterCommit = false }: Duty): Promise<INestMicroservice> {
  @Controller()
  class EffectsController {
    constructor(
      @InjectRepository(Effect) private readonly effects: Repository<Effect>,
      private readonly transactions: TransactionRunner,
    ) {}

    @EventPattern<string>(topic)
    @IdempotentConsumer('effects')
    @Transactional()
    @EmitsEvent(NoteWritten, (note: number) => ({ id: note }))
    async act(@Payload() value: string): Promise<number> {
      process.send?.('working');
      if (diesAfterCommit) this.transactions.afterCommit(() => process.kill(process.pid, 'SIGKILL'));
      await this.effects.insert({ note: Number(value) });
      // Something is always under way when a process is killed.
      await setTimeout(work ?? Math.random() * 20);
      return Number(value);
    }
  }

  @Controller()
  class BatchController {
    constructor(
      @InjectRepository(Effect) private readonly effects: Repository<Effect>,
      private readonly outbox: Outbox,
    ) {}

    @EventPattern<string>(topic)
    @IdempotentBatchConsumer('effects', { batchSize: 15 })
    async act(@Payload() values: string[], @Ctx() messages: BatchMessage[]): Promise<void> {
      await this.effects.insert(values.map((value) => ({ note: Number(value) })));
      for (const { context, payload } of messages) {
        withMessageContext(context, () => this.outbox.emit(NoteWritten.of(Number(payload))));
      }
      await setTimeout(Math.random() * 100);
    }
  }

  @Module({
    imports: [
      TypeOrmModule.forRoot({ ...database, entities: [Effect, Note], poolSize: 3 } as DataSourceOptions),
      TypeOrmModule.forFeature([Effect]),
      OutboxModule.forRoot({ publisher: new InMemoryBroker().publisher(), relay: { enabled: false } }),
    ],
    controllers: [isBatch ? BatchController : EffectsController],
  })
  class MemberModule {}

  const server = new KafkaSide().server(group, { run: { partitionsConsumedConcurrently: 3 } });
  const transport = isBatch ? { strategy: new KafkaBatchServer(server.options ?? {}) } : server;
  return NestFactory.createMicroservice<MicroserviceOptions>(MemberModule, { ...transport, logger: false });
}
