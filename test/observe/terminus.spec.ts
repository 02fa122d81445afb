import { EventEmitter } from 'node:events';
import { Controller, Get } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { HealthCheck, type HealthCheckResult, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { ConsumerEvents, IdempotentConsumer, Outbox, OutboxHealthIndicator, TransactionRunner } from 'nestjs-transactional-outbox';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import request from 'supertest';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KafkaGroups } from '../../libs/outbox/src/consume/kafka-groups';
import { startApp, type TestApp } from '../setup/app';
import { acknowledged, ScriptedPublishers, topicMissing } from '../relay/scripted-publisher';

const PATIENT = { timeout: 20_000 };

@Controller('health')
class Health {
  constructor(
    private readonly health: HealthCheckService,
    private readonly outbox: OutboxHealthIndicator,
  ) {}

  @Get('live')
  @HealthCheck()
  live(): Promise<HealthCheckResult> {
    return this.health.check([() => this.outbox.alive('outbox', { silentFor: 1500 })]);
  }

  @Get('ready')
  @HealthCheck()
  ready(): Promise<HealthCheckResult> {
    return this.health.check([() => this.outbox.relay('outbox'), () => this.outbox.consumers('consumers')]);
  }

  @Get('strict')
  @HealthCheck()
  strict(): Promise<HealthCheckResult> {
    return this.health.check([
      () => this.outbox.relay('outbox', { oldestAge: 200, lastSuccess: 400 }),
      () => this.outbox.consumers('consumers', { failingFor: 100 }),
    ]);
  }
}

@Controller()
class Failing {
  @EventPattern('orders')
  @IdempotentConsumer('failing', { retry: { attempts: 1000, attemptsPerDelivery: 1 } })
  fail(@Payload() _value: unknown): Promise<void> {
    return Promise.reject(new Error('no room'));
  }
}

describe('health for terminus', () => {
  let app: TestApp;
  const broker = new InMemoryBroker({ redeliveryDelay: 10 });
  const publishers = new ScriptedPublishers();

  beforeEach(() => {
    publishers.answer = (records) => records.map(() => acknowledged);
    publishers.connect = async () => undefined;
  });
  afterEach(() => app.close());

  const start = async (publisher = publishers.factory): Promise<void> => {
    const relay = { retryDelay: 20, maxRetryDelay: 50, pollInterval: 50, idlePollInterval: 50, publishTimeout: 30_000, sessionTimeout: 60_000 };
    app = await startApp('sqlite', { imports: [TerminusModule.forRoot({ errorLogStyle: 'json' })], controllers: [Health, Failing], outbox: { relay, publisher } });
  };
  const emit = (): Promise<void> =>
    app.app.get(TransactionRunner).run(async () => app.app.get(Outbox).emitRaw({ topic: 'orders', type: 'made', payload: '{}' }));
  const get = async (path: string): Promise<{ code: number; outbox: Record<string, unknown>; consumers: Record<string, unknown> }> => {
    const { status, body } = await request(app.app.getHttpServer()).get(`/health/${path}`);
    const { details } = body as { details: Record<string, Record<string, unknown>> };
    return { code: status, outbox: details['outbox'] ?? {}, consumers: details['consumers'] ?? {} };
  };

  it('is well when messages flow', async () => {
    await start();
    await emit();
    await expect.poll(() => get('strict'), PATIENT).toMatchObject({
      code: 200,
      outbox: { status: 'up', brokerReachable: true, pending: 0, held: 0, dead: 0, oldestAge: null, running: true, missingTopics: [], reasons: [] },
      consumers: { status: 'up', consumers: [] },
    });
    expect(await get('live')).toMatchObject({ code: 200, outbox: { status: 'up', reasons: [] } });
  });

  it('tells of a broker that is away: alive, ready, but not by thresholds', async () => {
    publishers.connect = () => Promise.reject(new Error('nobody there'));
    await start();
    await emit();
    await expect.poll(() => get('strict'), PATIENT).toMatchObject({ code: 503, outbox: { status: 'down', brokerReachable: false, pending: 1 } });
    await expect.poll(async () => (await get('strict')).outbox['reasons'], PATIENT).toEqual([
      expect.stringContaining('the oldest message has waited for'),
      expect.stringContaining('the relay has had no success for'),
      'broker: nobody there',
    ]);
    expect(await get('ready')).toMatchObject({ code: 200, outbox: { status: 'up', brokerReachable: false, reasons: ['broker: nobody there'] } });
    // Longer than a relay that hangs may.
    await expect.poll(async () => (await get('ready')).outbox['oldestAge'], PATIENT).toBeGreaterThan(1600);
    expect(await get('live')).toMatchObject({ code: 200 });
  });

  it('tells of topics that do not exist or take nothing', async () => {
    await start();
    publishers.answer = (records) => records.map(() => topicMissing);
    await emit();
    await expect.poll(() => get('ready'), PATIENT).toMatchObject({ code: 200, outbox: { missingTopics: ['orders'], held: 1 } });
    publishers.answer = (records) => records.map(() => ({ status: 'unknown', failure: { code: 'NOT_ENOUGH_REPLICAS', message: 'one is missing' } }));
    await expect.poll(() => get('ready'), PATIENT).toMatchObject({
      code: 200,
      outbox: { missingTopics: [], unavailableTopics: [{ topic: 'orders', error: 'NOT_ENOUGH_REPLICAS: one is missing' }] },
    });
  });

  it('is not ready without the database, and alive', async () => {
    await start();
    await expect.poll(() => get('ready'), PATIENT).toMatchObject({ code: 200 });
    await app.dataSource.query('ALTER TABLE outbox_pending RENAME TO elsewhere');
    await expect.poll(() => get('ready'), PATIENT).toMatchObject({ code: 503, outbox: { status: 'down', reasons: [expect.stringMatching('the database does not answer'), expect.anything()] } });
    expect(await get('live')).toMatchObject({ code: 200 });
  });

  it('is not alive when the relay hangs', async () => {
    const { letGo, reached } = publishers.hang();
    await start();
    await emit();
    await reached;
    await expect.poll(() => get('live'), PATIENT).toMatchObject({ code: 503, outbox: { status: 'down', reasons: [expect.stringContaining('no sign of life')] } });
    letGo();
    await expect.poll(() => get('live'), PATIENT).toMatchObject({ code: 200 });
  });

  it('is not alive when a Kafka client has crashed for good', async () => {
    await start();
    const client = Object.assign(new EventEmitter(), { events: { CRASH: 'crash', GROUP_JOIN: 'join' } });
    (Reflect.get(app.app.get(ConsumerEvents), 'groups') as KafkaGroups).follow(client);
    const crash = (restart: boolean): boolean => client.emit('crash', { payload: { error: new Error('gone'), groupId: 'stock', restart } });
    crash(true);
    expect(await get('live')).toMatchObject({ code: 200 });
    expect(await get('ready')).toMatchObject({ code: 200, consumers: { reasons: [expect.stringContaining('group stock is away')] } });
    crash(false);
    expect(await get('live')).toMatchObject({ code: 503, outbox: { reasons: [expect.stringContaining('restart the app')] } });
  });

  it('is not ready when a consumer has failed for too long', async () => {
    await start(broker.publisher());
    app.app.connectMicroservice({ strategy: broker.server({ groupId: 'failing' }) });
    await app.app.startAllMicroservices();
    await emit();
    await expect.poll(() => get('strict'), PATIENT).toMatchObject({ code: 503, consumers: { status: 'down', reasons: [expect.stringContaining('failing has failed since')] } });
    expect(await get('ready')).toMatchObject({ code: 200, consumers: { status: 'up', consumers: [{ consumer: 'failing', lastError: 'no room' }] } });
  });
});
