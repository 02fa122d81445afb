import { randomUUID } from 'node:crypto';
import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { InjectRepository } from '@nestjs/typeorm';
import { IdempotentConsumer } from 'nestjs-transactional-outbox';
import { type DataSourceOptions, Repository } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TcpProxy } from '../chaos/src/tcp-proxy';
import { Note } from '../setup/notes';
import { freshDataSource, SERVERS } from '../setup/databases';
import { type OwnServer, startOwn } from '../services/index.mjs';
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

  // A10
  it('all its connections killed at once cost nothing but another attempt', async () => {
    const handled = app.events.counts('outage').handled;
    await send(100, 160);
    await until('the work has begun', () => app.events.counts('outage').handled > handled + 5);
    expect(await killConnections(app.dataSource.options)).toBeGreaterThan(0);
    await drained(kafka, group, topic);
    expect(await app.count('note', 'id >= 100')).toBe(60);
    expect(await app.count('consumed_message')).toBe(140);
    expect(app.events.counts('outage')['dead-lettered']).toBe(0);
  });
});

/** Ends every session in the app's database, and says how many there were. */
async function killConnections({ type, database }: DataSourceOptions): Promise<number> {
  const { dataSource, close } = await freshDataSource(type as 'mysql' | 'mariadb' | 'postgres');
  try {
    if (type === 'postgres') {
      const ended = (await dataSource.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${String(database)}'`,
      )) as unknown[];
      return ended.length;
    }
    const sessions = (await dataSource.query(
      `SELECT ID AS id FROM information_schema.PROCESSLIST WHERE DB = '${String(database)}'`,
    )) as { id: string }[];
    for (const { id } of sessions) await dataSource.query(`KILL ${id}`).catch(() => undefined);
    return sessions.length;
  } finally {
    await close();
  }
}

// A10: the server itself, for longer than all attempts take.
describe.each(SERVERS)('while a %s server is down', (database) => {
  const run = randomUUID().slice(0, 8);
  const [topic, group] = [`down-${run}`, `down-${run}`];
  const kafka = new KafkaSide();
  let server: OwnServer;
  let app: ConsumerApp;

  @Controller()
  class DownController {
    constructor(@InjectRepository(Note) private readonly notes: Repository<Note>) {}

    @EventPattern<string>(topic)
    @IdempotentConsumer('down', { retry: { attempts: 2, attemptsPerDelivery: 2, backoff: 5 } })
    async write(@Payload() value: string): Promise<void> {
      await this.notes.insert({ id: Number(value) });
    }
  }

  beforeAll(async () => {
    server = await startOwn(database);
    const { host, port, user: username, password, database: name } = server.info;
    await kafka.connect();
    await kafka.createTopics([topic], 3);
    app = await startConsumers(database, {
      controllers: [DownController],
      servers: [kafka.server(group)],
      dataSource: { host, port, username, password, database: name, poolSize: 3 },
    });
  });
  afterAll(async () => {
    await app?.close();
    await kafka.close();
    await server?.remove();
  });

  it('messages wait, and are handled by themselves when it is back', async () => {
    const send = (from: number, to: number): Promise<void> =>
      kafka.send(topic, ...Array.from({ length: to - from }, (_, i) => ({ value: String(from + i), headers: { id: `m${from + i}` } })));
    await send(0, 40);
    await until('the work has begun', () => app.events.counts('down').handled > 5);
    await server.kill('SIGKILL');
    await send(40, 60);
    const felt = app.events.counts('down').failed;
    await until('every message has failed more often than it may', () => app.events.counts('down').failed > felt + 12);
    await server.restart();
    await drained(kafka, group, topic);
    expect(await app.count('note')).toBe(60);
    expect(await app.count('consumed_message')).toBe(60);
    expect(app.events.counts('down')['dead-lettered']).toBe(0);
  });
});
