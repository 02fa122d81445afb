import { randomUUID } from 'node:crypto';
import { Controller } from '@nestjs/common';
import { Ctx, EventPattern, type KafkaContext, Payload } from '@nestjs/microservices';
import { IsInt, IsUUID } from 'class-validator';
import { Redis } from 'ioredis';
import { Kafka, logLevel } from 'kafkajs';
import { type ConsumeOptions, DeadLetters, IdempotentBatchConsumer, IdempotentConsumer, Outbox, OutboxEvent, TransactionRunner } from 'nestjs-transactional-outbox';
import { KafkaBatchServer } from 'nestjs-transactional-outbox/kafka-batch';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { redisDedupe } from 'nestjs-transactional-outbox/redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ConsumerApp, startConsumers } from '../consume/consumer-app';
import { KafkaSide } from '../consume/kafka-side';
import { until } from '../consume/until';
import { BY } from './fixture';

const run = randomUUID().slice(0, 8);
const topicOf = (name: string): string => `${name}-${run}`;
const KINDS = ['own-id', 'by-state', 'by-redis', 'in-batch', 'in-sequence', 'cloud'] as const;
type Kind = (typeof KINDS)[number];

@OutboxEvent({ type: 'step.taken', topic: topicOf('cloud'), key: (event: StepTaken) => event.ref })
class StepTaken {
  @IsUUID() ref!: string;
  @IsInt() step!: number;
}

/** A consumer of every kind gives messages up, and gets them back. */
describe('dead letters come back', () => {
  const side = new KafkaSide();
  const client = new Kafka({ clientId: 'operator', brokers: side.brokers, logLevel: logLevel.NOTHING });
  const handled: [Kind, StepTaken][] = [];
  let broken = true;
  let redis: Redis;
  let app: ConsumerApp;
  let dead: DeadLetters;

  function handle(kind: Kind, event: StepTaken): void {
    if (broken) throw new Error('not now');
    handled.push([kind, event]);
  }
  const options = { retry: { attempts: 1 } } satisfies ConsumeOptions;

  @Controller()
  class KindsController {
    @EventPattern<string>(topicOf('own-id'))
    @IdempotentConsumer('own-id', { ...options, events: [StepTaken], messageId: (context) => `${context.switchToRpc().getData<StepTaken>().ref}/1` })
    async ownId(@Payload() event: StepTaken): Promise<void> {
      handle('own-id', event);
    }

    @EventPattern<string>(topicOf('by-state'))
    @IdempotentConsumer('by-state', { ...options, dedupe: 'state', isApplied: ({ ref }: StepTaken) => handled.some(([kind, event]) => kind === 'by-state' && event.ref === ref) })
    async byState(@Payload() event: StepTaken): Promise<void> {
      handle('by-state', event);
    }

    @EventPattern<string>(topicOf('by-redis'))
    @IdempotentConsumer('by-redis', { ...options, dedupe: 'redis' })
    async byRedis(@Payload() event: StepTaken): Promise<void> {
      handle('by-redis', event);
    }

    @EventPattern<string>(topicOf('in-batch'))
    @IdempotentBatchConsumer('in-batch', { ...options, events: [StepTaken] })
    async inBatch(@Payload() events: StepTaken[]): Promise<void> {
      for (const event of events) handle('in-batch', event);
    }

    @EventPattern<string>(topicOf('in-sequence'))
    @IdempotentConsumer('in-sequence', { ...options, events: [StepTaken], sequence: { of: ({ step }) => step, key: () => 'all' } })
    async inSequence(@Payload() event: StepTaken): Promise<void> {
      handle('in-sequence', event);
    }

    @EventPattern<string>(topicOf('cloud'))
    @IdempotentConsumer('cloud', { ...options, events: [StepTaken] })
    async cloud(@Payload() event: StepTaken, @Ctx() _context: KafkaContext): Promise<void> {
      handle('cloud', event);
    }
  }

  beforeAll(async () => {
    await side.connect();
    await side.createTopics(KINDS.flatMap((kind) => [topicOf(kind), `${topicOf(kind)}.dlt`]));
    redis = new Redis(process.env['OUTBOX_REDIS_URL'] ?? '');
    app = await startConsumers('postgres', {
      controllers: [KindsController],
      servers: [{ strategy: new KafkaBatchServer(side.server(run).options ?? {}) }],
      outbox: {
        publisher: kafkaPublisher({ clientId: run, brokers: side.brokers }),
        relay: { pollInterval: 20 },
        cloudEvents: { source: '/steps' },
        consume: { redis: redisDedupe({ client: redis, prefix: `${run}:` }) },
      },
    });
    dead = app.app.get(DeadLetters);
  });
  afterAll(async () => {
    await app?.close();
    await redis?.quit();
    await side.close();
  });

  /** What is on the kind's dead-letter topic. */
  async function lettersOf(kind: Kind, count: number) {
    const topic = `${topicOf(kind)}.dlt`;
    await until(`${count} dead letters of ${kind}`, async () => (await side.read(topic)).length === count);
    return (await dead.list(client, topic)).letters;
  }

  it.each(KINDS.filter((kind) => kind !== 'cloud'))('to a consumer of the kind %s, once', async (kind) => {
    broken = true;
    const event = { ref: randomUUID(), step: 1 };
    await side.send(topicOf(kind), { key: 'k', value: JSON.stringify(event), headers: { id: randomUUID(), event_type: 'step.taken' } });
    await app.reached(kind, 'dead-lettered');
    const letters = await lettersOf(kind, 1);
    broken = false;
    expect(await dead.replay(client, `${topicOf(kind)}.dlt`, letters, BY)).toMatchObject({ replayed: 1 });
    await until(`${kind} has seen it`, () => app.events.counts(kind).handled + app.events.counts(kind).duplicate > 0);
    expect(handled.filter(([name]) => name === kind)).toEqual([[kind, event]]);
    await until('the sweeper has marked it', async () => (await app.count('outbox_message', `topic = '${topicOf(kind)}' AND status = 1`)) === 1);
    expect(await dead.replay(client, `${topicOf(kind)}.dlt`, letters, BY)).toMatchObject({ replayed: 1 });
    await app.reached(kind, 'duplicate');
    expect(handled.filter(([name]) => name === kind)).toHaveLength(1);
  });

  it('to a consumer in sequence, where one that the key has passed meanwhile is stale', async () => {
    broken = true;
    await side.send(topicOf('in-sequence'), { key: 'k', value: JSON.stringify({ ref: randomUUID(), step: 5 }), headers: { id: randomUUID(), event_type: 'step.taken' } });
    const letters = await lettersOf('in-sequence', 2);
    broken = false;
    await side.send(topicOf('in-sequence'), { key: 'k', value: JSON.stringify({ ref: randomUUID(), step: 6 }), headers: { id: randomUUID(), event_type: 'step.taken' } });
    await app.reached('in-sequence', 'handled', 2);
    expect(await dead.replay(client, `${topicOf('in-sequence')}.dlt`, letters.slice(1), BY)).toMatchObject({ replayed: 1 });
    await app.reached('in-sequence', 'stale');
    expect(handled.filter(([name]) => name === 'in-sequence').map(([, { step }]) => step)).toEqual([1, 6]);
  });

  it('as CloudEvents, those of this service and those of others', async () => {
    broken = true;
    const [own, foreign] = [randomUUID(), randomUUID()];
    await app.app.get(TransactionRunner).run(async () => app.app.get(Outbox).emit(Object.assign(new StepTaken(), { ref: own, step: 1 })));
    const attributes = { ce_specversion: '1.0', ce_id: randomUUID(), ce_source: '/elsewhere', ce_type: 'step.taken', ce_subject: 's', ce_special: 'x', 'content-type': 'application/json' };
    await side.send(topicOf('cloud'), { key: foreign, value: JSON.stringify({ ref: foreign, step: 2 }), headers: attributes });
    await app.reached('cloud', 'dead-lettered', 2);
    const letters = await lettersOf('cloud', 2);
    expect(letters.map(({ type, messageId }) => [type, messageId])).toEqual(expect.arrayContaining([['step.taken', attributes.ce_id]]));
    broken = false;
    await until('the sweeper has marked its own', async () => (await app.count('outbox_message', `topic = '${topicOf('cloud')}' AND status = 1`)) === 1);
    expect(await dead.replay(client, `${topicOf('cloud')}.dlt`, letters, BY)).toMatchObject({ replayed: 2 });
    await app.reached('cloud', 'handled', 2);
    expect(new Set(handled.filter(([name]) => name === 'cloud').map(([, { ref }]) => ref))).toEqual(new Set([own, foreign]));
    const copies = (await side.read(topicOf('cloud'))).filter(({ headers }) => headers['ce_id'] === attributes.ce_id);
    expect(copies).toHaveLength(2);
    expect(copies[1]?.headers).toMatchObject(attributes);
  });
});
