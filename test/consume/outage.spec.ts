import { randomUUID } from 'node:crypto';
import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { InjectRepository } from '@nestjs/typeorm';
import { IdempotentConsumer } from 'nestjs-transactional-outbox';
import { Repository } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TcpProxy } from '../chaos/src/tcp-proxy';
import { Note } from '../setup/notes';
import { SERVERS } from '../setup/databases';
import { type ConsumerApp, drained, startConsumers } from './consumer-app';
import { KafkaSide } from './kafka-side';
import { until } from './until';

describe.each(SERVERS)('while %s is away', (database) => {
  const run = randomUUID().slice(0, 8);
  const [topic, group] = [`outage-${run}`, `outage-${run}`];
  const kafka = new KafkaSide();
  let proxy: TcpProxy;
  let app: ConsumerApp;

  @Controller()
  class OutageController {
    constructor(@InjectRepository(Note) private readonly notes: Repository<Note>) {}

    @EventPattern<string>(topic)
    @IdempotentConsumer('outage', { retry: { attempts: 3, attemptsPerDelivery: 3, backoff: 5 } })
    async write(@Payload() value: string): Promise<void> {
      await this.notes.insert({ id: Number(value) });
    }
  }

  beforeAll(async () => {
    const { hostname, port } = new URL(process.env[`OUTBOX_${database.toUpperCase()}_URL`] ?? '');
    proxy = await TcpProxy.listen({ host: hostname, port: Number(port) });
    await kafka.connect();
    await kafka.createTopics([topic], 6);
    app = await startConsumers(database, {
      controllers: [OutageController],
      servers: [kafka.server(group, { run: { partitionsConsumedConcurrently: 6 } })],
      dataSource: { host: '127.0.0.1', port: proxy.port, poolSize: 3 },
    });
  });
  afterAll(async () => {
    proxy?.set('open');
    await app?.close();
    await proxy?.close();
    await kafka.close();
  });

  const send = (from: number, to: number): Promise<void> =>
    kafka.send(topic, ...Array.from({ length: to - from }, (_, i) => ({ value: String(from + i), headers: { id: `m${from + i}` } })));

  // A11: six messages at once, and a pool of three.
  it('nothing is given up, and consumption goes on by itself', async () => {
    await send(0, 60);
    await send(0, 20);
    await until('the work has begun', () => app.events.counts('outage').handled > 5);
    proxy.set('cut');
    await send(60, 80);
    await until('the outage is felt', () => app.events.counts('outage').failed > 12);
    proxy.set('open');
    await drained(kafka, group, topic);
    expect(await app.count('note')).toBe(80);
    expect(await app.count('consumed_message')).toBe(80);
    expect(app.events.counts('outage')['dead-lettered']).toBe(0);
    expect(await app.messages(`${topic}.dlt`)).toEqual([]);
  });
});
