import { Controller, Inject, type INestMicroservice, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventPattern, type KafkaOptions, Payload } from '@nestjs/microservices';
import { IdempotentBatchConsumer, IdempotentConsumer, Transactional } from 'nestjs-transactional-outbox';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { KafkaBatchServer } from 'nestjs-transactional-outbox/kafka-batch';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { BenchModule } from './app.js';
import { type BenchEvent, KEYS } from './event.js';

export const KINDS = ['plain', 'single', 'batch'] as const;
export type Kind = (typeof KINDS)[number];

/** Counts what was handled, and how long it took from the first call. */
export class Tally {
  private begun: number | undefined;
  private took: number | undefined;
  private waiting: (() => void) | undefined;

  constructor(private left: number) {}

  async around(count: number, work: () => Promise<unknown>): Promise<void> {
    this.begun ??= performance.now();
    await work();
    this.left -= count;
    if (this.left > 0) return;
    this.took ??= performance.now() - this.begun;
    this.waiting?.();
  }

  /** Milliseconds, when all has been handled. */
  async done(): Promise<number> {
    if (this.took === undefined) await new Promise<void>((resolve) => (this.waiting = resolve));
    return this.took ?? Number.NaN;
  }
}

/** Handlers that do the same, one UPDATE in a transaction. */
export const CONTROLLERS: Record<Kind, (topic: string, tally: Tally) => Type<object>> = {
  plain(topic, tally) {
    @Controller()
    class PlainController {
      constructor(@Inject(DataSource) private readonly sql: DataSource) {}

      @EventPattern<string>(topic)
      @Transactional()
      handle(@Payload() event: BenchEvent): Promise<void> {
        return tally.around(1, () => increment(this.sql, [event]));
      }
    }
    return PlainController;
  },
  single(topic, tally) {
    @Controller()
    class SingleController {
      constructor(@Inject(DataSource) private readonly sql: DataSource) {}

      @EventPattern<string>(topic)
      @IdempotentConsumer('bench.single')
      handle(@Payload() event: BenchEvent): Promise<void> {
        return tally.around(1, () => increment(this.sql, [event]));
      }
    }
    return SingleController;
  },
  batch(topic, tally) {
    @Controller()
    class BatchController {
      constructor(@Inject(DataSource) private readonly sql: DataSource) {}

      @EventPattern<string>(topic)
      @IdempotentBatchConsumer('bench.batch')
      handle(@Payload() events: readonly BenchEvent[]): Promise<void> {
        return tally.around(events.length, () => increment(this.sql, events));
      }
    }
    return BatchController;
  },
};

function increment(sql: DataSource, events: readonly BenchEvent[]): Promise<unknown> {
  const ids = new Set(events.map(({ n }) => n % KEYS));
  return sql.query(`UPDATE counter SET total = total + 1 WHERE id IN (${[...ids].join(', ')})`);
}

/** A service that consumes, on Nest's Kafka server as the library extends it. */
export async function openConsumer(
  database: DataSourceOptions,
  controller: Type<object>,
  kafka: NonNullable<KafkaOptions['options']>,
): Promise<INestMicroservice> {
  const options = { publisher: new InMemoryBroker().publisher(), relay: { enabled: false }, retention: false } as const;
  @Module({ imports: [BenchModule.of(database, options, 10)], controllers: [controller] })
  class ConsumerModule {}
  return NestFactory.createMicroservice(ConsumerModule, { strategy: new KafkaBatchServer(kafka), logger: ['error'], abortOnError: false });
}
