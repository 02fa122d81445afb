import { randomUUID } from 'node:crypto';
import { Catch, Controller, type ExceptionFilter, UseFilters } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { Redis } from 'ioredis';
import { IdempotentConsumer, OutboxHealth } from 'nestjs-transactional-outbox';
import { redisDedupe } from 'nestjs-transactional-outbox/redis';
import { prometheusMetrics } from 'nestjs-transactional-outbox/prometheus';
import { Registry } from 'prom-client';
import { type Observable, throwError } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Scrape } from '../observe/scrape';
import { type ConsumerApp, drained, startConsumers } from './consumer-app';
import { KafkaSide } from './kafka-side';
import { until } from './until';

@Catch()
class PassOn implements ExceptionFilter {
  catch(error: unknown): Observable<never> {
    return throwError(() => error);
  }
}

// A10
describe('health', () => {
  const run = randomUUID().slice(0, 8);
  const topicOf = (name: string): string => `${name}-${run}`;
  const kafka = new KafkaSide();
  let crash: Error | undefined;
  const registry = new Registry();
  let redis: Redis;
  let app: ConsumerApp;

  @Controller()
  @UseFilters(PassOn)
  class HealthController {
    private readonly failed = new Set<string>();

    @EventPattern<string>(topicOf('once'))
    @IdempotentConsumer('once', { retry: { backoff: 1 } })
    async once(@Payload() value: string): Promise<void> {
      if (this.failed.has(value)) return;
      this.failed.add(value);
      throw new Error('a hiccup');
    }

    @EventPattern<string>(topicOf('stop'))
    @IdempotentConsumer('stop', { onExhausted: 'stop', retry: { attempts: 1 } })
    async stop(@Payload() value: string): Promise<void> {
      if (value === 'bad') throw new Error('never');
    }

    @EventPattern<string>(topicOf('redis'))
    @IdempotentConsumer('redis', { dedupe: 'redis', retry: { backoff: 1 } })
    async byRedis(): Promise<void> {}

    /** A handler of the app's own, without the library, that the client takes for a mistake in itself. */
    @EventPattern<string>(topicOf('plain'))
    async plain(): Promise<void> {
      if (crash) throw crash;
    }
  }

  const status = async (consumer: string) => {
    const { consumers, reasons } = await app.app.get(OutboxHealth).check();
    return { ...consumers.find((one) => one.consumer === consumer), reasons: reasons.filter((reason) => reason.startsWith(`${consumer} `)) };
  };

  beforeAll(async () => {
    await kafka.connect();
    await kafka.createTopics(['once', 'stop', 'redis', 'plain'].map(topicOf), 2);
    redis = new Redis(process.env['OUTBOX_REDIS_URL'] ?? '', { enableOfflineQueue: false, retryStrategy: () => null });
    app = await startConsumers('sqlite', {
      controllers: [HealthController],
      servers: [kafka.server(run)],
      outbox: { metrics: prometheusMetrics({ registry }), consume: { redis: redisDedupe({ client: redis, prefix: `${run}:`, timeout: 200 }) } },
    });
  });
  afterAll(async () => {
    await app?.close();
    redis?.disconnect();
    await kafka.close();
  });

  it('says nothing of an attempt that fails once', async () => {
    const listened: string[] = [];
    const unsubscribe = app.events.subscribe(({ kind }) => {
      if (kind === 'failed') void status('once').then(({ reasons }) => listened.push(...reasons, 'looked'));
    });
    await kafka.send(topicOf('once'), { value: 'a', headers: { id: 'once-a' } });
    await drained(kafka, run, topicOf('once'));
    await until('health was asked in between', () => listened.length > 0);
    unsubscribe();
    expect(listened).toEqual(['looked']);
    expect(await status('once')).toMatchObject({ failingSince: null, lastError: null, lastSuccessAt: expect.any(Date) as unknown });
  });

  it('goes on to tell of a partition that is stopped, when others of the consumer go well', async () => {
    await kafka.send(topicOf('stop'), { partition: 0, value: 'bad', headers: { id: 'bad' } });
    await app.reached('stop', 'stopped');
    await kafka.send(topicOf('stop'), { partition: 1, value: 'good', headers: { id: 'good' } });
    await app.reached('stop', 'handled');
    expect(await status('stop')).toMatchObject({ stopped: [`${topicOf('stop')}[0]`], reasons: [expect.stringContaining(`${topicOf('stop')}[0]`)] });
    expect((await Scrape.of(registry)).sum('outbox_consumer_partitions_stopped', { consumer: 'stop' })).toBe(1);
  });

  it('tells that Redis is away', async () => {
    await kafka.send(topicOf('redis'), { value: 'a', headers: { id: 'a' } });
    await app.reached('redis', 'handled');
    redis.disconnect();
    await kafka.send(topicOf('redis'), { value: 'b', headers: { id: 'b' } });
    await until('health tells', async () => (await status('redis')).reasons.length > 0);
    expect((await status('redis')).reasons[0]).toMatch(/Redis/);
    await redis.connect();
    await drained(kafka, run, topicOf('redis'));
    expect(await status('redis')).toMatchObject({ failingSince: null, reasons: [] });
    expect(await app.count('consumed_failure', "consumer = 'redis'")).toBe(0);
  });

  it('tells of a consumer of Kafka that has crashed, while it comes back and when it does not', async () => {
    const groups = async () => (await app.app.get(OutboxHealth).check()).groups;
    crash = new Error('no luck');
    await kafka.send(topicOf('plain'), { value: 'a' });
    await until('the consumer has crashed', async () => (await groups()).length > 0);
    expect(await groups()).toMatchObject([{ groupId: run, isComingBack: true }]);
    const away = async () => (await Scrape.of(registry)).sum('outbox_consumer_group_away', { group: run });
    expect(await away()).toBe(1);
    crash = undefined;
    await drained(kafka, run, topicOf('plain'));
    expect(await groups()).toEqual([]);
    expect(await away()).toBeUndefined();

    crash = new TypeError('x is not a function');
    await kafka.send(topicOf('plain'), { value: 'b' });
    await until('the consumer is gone', async () => (await groups())[0]?.isComingBack === false);
    const { status: overall, reasons } = await app.app.get(OutboxHealth).check();
    expect(overall).toBe('degraded');
    expect(await away()).toBe(1);
    expect(reasons).toEqual(expect.arrayContaining([expect.stringMatching(new RegExp(`group ${run} .*x is not a function.*restart`))]));
  });
});
