import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { Redis } from 'ioredis';
import { ConsumerEvents, IdempotentConsumer, IdempotentRunner, TransactionRunner } from 'nestjs-transactional-outbox';
import { redisDedupe, type RedisDedupeOptions } from 'nestjs-transactional-outbox/redis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type OwnServer, startOwn } from '../services/index.mjs';
import { startApp, type TestApp } from '../setup/app';
import { until } from './until';

const REDIS_URL = process.env['OUTBOX_REDIS_URL'] ?? '';

async function start(url: string, options: Partial<RedisDedupeOptions> = {}, controllers: (new () => object)[] = []) {
  const client = new Redis(url, { retryStrategy: () => 50 });
  client.on('error', () => undefined);
  const app = await startApp('sqlite', { controllers, outbox: { consume: { redis: redisDedupe({ client, ...options }) } } });
  return { app, client, runner: app.app.get(IdempotentRunner) };
}

describe('a message that Redis keeps from being handled twice', () => {
  let app: TestApp;
  let client: Redis;
  let runner: IdempotentRunner;
  let id: string;
  const redis = { dedupe: 'redis' } as const;
  const NEVER = (): Promise<never> => Promise.reject(new Error('must not run'));
  const LEASE = 300;

  beforeAll(async () => {
    ({ app, client, runner } = await start(REDIS_URL, { lease: LEASE }));
  });
  afterAll(async () => {
    await app?.close();
    client?.disconnect();
  });
  beforeEach(() => {
    id = randomUUID();
  });
  const key = (): string => `outbox:consumed:mail%3Asend:${id}`;

  it('is handled once, and remembered for the retention', async () => {
    expect(await runner.run('mail:send', id, async () => 'sent', redis)).toEqual({ duplicate: false, result: 'sent' });
    expect(await runner.run('mail:send', id, NEVER, redis)).toEqual({ duplicate: true });
    expect(await client.get(key())).toBe('done');
    const left = await client.pttl(key());
    expect(left).toBeGreaterThan(7 * 24 * 3600 * 1000);
    expect(await app.dataSource.query('SELECT * FROM consumed_message')).toEqual([]);
    expect(await runner.run('mail', `send:${id}`, async () => 1, redis)).toMatchObject({ duplicate: false });
  });

  it('can be tried again at once when its handler fails', async () => {
    await expect(runner.run('mail:send', id, () => Promise.reject(new Error('no')), redis)).rejects.toThrow('no');
    expect(await client.exists(key())).toBe(0);
    expect(await runner.run('mail:send', id, async () => 1, redis)).toMatchObject({ duplicate: false });
  });

  it('is handled once however many copies come at once, and the lease outlives its time while a handler works', async () => {
    let runs = 0;
    const slow = async (): Promise<void> => {
      runs++;
      await new Promise((resolve) => setTimeout(resolve, 4 * LEASE));
    };
    const copies = Promise.all(Array.from({ length: 6 }, () => runner.run('mail:send', id, slow, redis)));
    await until('it is claimed', async () => (await client.exists(key())) === 1);
    await expect(runner.run('mail:send', id, NEVER, { ...redis, concurrentCopies: 'fail' })).rejects.toMatchObject({
      code: 'OUTBOX_MESSAGE_IN_PROGRESS',
    });
    expect((await copies).filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    expect(runs).toBe(1);
  });

  it('is handled by another when a process is killed in the middle', async () => {
    const holder = fork(fileURLToPath(new URL('./redis-holder.mjs', import.meta.url)), [REDIS_URL, 'mail:send', id, '1000']);
    await once(holder, 'message');
    const next = runner.run('mail:send', id, async () => 'sent after all', redis);
    holder.kill('SIGKILL');
    expect(await next).toEqual({ duplicate: false, result: 'sent after all' });
  });

  it('cannot be marked as done by who has lost the lease', async () => {
    const first = runner.run('mail:send', id, async () => {
      // As if this process had stood still: the lease ends, and another takes over.
      await client.set(key(), 'another', 'PX', 60_000);
    }, redis);
    await expect(first).rejects.toMatchObject({ code: 'OUTBOX_LEASE_LOST', retryable: true });
    expect(await client.get(key())).toBe('another');
    // Nor given back by it.
    const failing = runner.run('mail:send', id, NEVER, { ...redis, concurrentCopies: 'fail' });
    await expect(failing).rejects.toMatchObject({ code: 'OUTBOX_MESSAGE_IN_PROGRESS' });
    await client.del(key());
    const undone = runner.run('mail:send', id, async () => {
      await client.set(key(), 'another', 'PX', 60_000);
      throw new Error('no');
    }, redis);
    await expect(undone).rejects.toThrow('no');
    expect(await client.get(key())).toBe('another');
  });

  it('is refused inside a transaction, which could be rolled back after it', async () => {
    const inside = app.app.get(TransactionRunner).run(() => runner.run('mail:send', id, NEVER, redis));
    await expect(inside).rejects.toMatchObject({ code: 'OUTBOX_NO_TRANSACTION' });
  });
});

describe('while Redis loses its data or is away', () => {
  let server: OwnServer;
  let app: TestApp;
  let client: Redis;
  let runner: IdempotentRunner;
  const sent: string[] = [];
  let duringSend: (() => Promise<unknown>) | undefined;

  @Controller()
  class MailController {
    @EventPattern<string>('mails')
    @IdempotentConsumer('mail', { dedupe: 'redis', retry: { attempts: 2, attemptsPerDelivery: 2, backoff: 5 } })
    async send(@Payload() mail: string): Promise<void> {
      sent.push(mail);
      await duringSend?.();
    }
  }

  beforeAll(async () => {
    server = await startOwn('redis');
    ({ app, client, runner } = await start(server.info.url, { timeout: 300, lease: 120_000 }, [MailController]));
    app.app.connectMicroservice({ strategy: app.broker.server({ groupId: 'g' }) });
    await app.app.startAllMicroservices();
  });
  afterAll(async () => {
    client?.disconnect();
    await app?.close();
    await server?.remove();
  });
  const send = (mail: string): void => {
    app.broker.produce('mails', { value: mail, headers: { id: mail } });
  };
  const counts = () => app.app.get(ConsumerEvents).counts('mail');

  it('FLUSHALL makes what it forgot run again, and a handler under way is not taken for done', async () => {
    send('a');
    await app.broker.idle();
    await client.flushall();
    send('a');
    await app.broker.idle();
    expect(sent.splice(0)).toEqual(['a', 'a']);
    duringSend = async () => {
      duringSend = undefined;
      await client.flushall();
    };
    send('b');
    await app.broker.idle();
    expect(sent.splice(0)).toEqual(['b', 'b']);
    expect(counts()).toMatchObject({ handled: 3, failed: 1, 'dead-lettered': 0 });
  });

  // Claims that the client still sends when Redis is back must not stand in the way for as long as their lease.
  it('nothing runs without dedupe, nothing is given up, and all is handled afterwards', async () => {
    await server.stop();
    const before = counts();
    await expect(runner.run('mail', 'x', () => Promise.reject(new Error('must not run')), { dedupe: 'redis' })).rejects.toMatchObject({
      code: 'OUTBOX_REDIS_UNAVAILABLE',
      retryable: true,
    });
    for (const mail of ['c', 'd', 'e']) send(mail);
    // Several times as many as there are attempts.
    await until('every message has failed more often than it may', () => counts().failed > before.failed + 18);
    expect(sent).toEqual([]);
    await server.restart();
    await app.broker.idle();
    expect(sent.toSorted()).toEqual(['c', 'd', 'e']);
    expect(counts()).toMatchObject({ handled: before.handled + 3, 'dead-lettered': 0 });
    expect(await app.dataSource.query('SELECT * FROM consumed_failure')).toEqual([]);
  });
});

describe('a consumer with dedupe: "redis"', () => {
  it('is refused at boot without consume.redis', async () => {
    @Controller()
    class MailController {
      @EventPattern<string>('mails') @IdempotentConsumer('mail', { dedupe: 'redis' }) async send(): Promise<void> {}
    }
    await expect(startApp('sqlite', { controllers: [MailController] })).rejects.toMatchObject({
      code: 'OUTBOX_OPTIONS_INVALID',
      message: expect.stringContaining('MailController.send'),
    });
    await expect(startApp('sqlite', { outbox: { consume: { redis: {} as never } } })).rejects.toThrow(/consume.redis/);
    expect(() => redisDedupe({ client: {} as Redis })).toThrow(/ioredis/);
    expect(() => redisDedupe({ client: new Redis({ lazyConnect: true }), lease: 0 })).toThrow(/lease/);
  });
});
