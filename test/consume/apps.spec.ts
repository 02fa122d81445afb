import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { Controller, Get, Injectable, Scope } from '@nestjs/common';
import { EventPattern, MessagePattern, Payload, type TcpOptions, Transport } from '@nestjs/microservices';
import { InjectRepository } from '@nestjs/typeorm';
import { IdempotentConsumer, Transactional } from 'nestjs-transactional-outbox';
import { Repository } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp } from '../setup/app';
import { Note } from '../setup/notes';
import { type ConsumerApp, drained, startConsumers } from './consumer-app';
import { KafkaSide } from './kafka-side';
import { until } from './until';

describe('consumers in apps of every kind', () => {
  const run = randomUUID().slice(0, 8);
  const topicOf = (name: string): string => `${name}-${run}`;
  const groups = [`one-${run}`, `two-${run}`];
  const kafka = new KafkaSide();
  const calls: string[] = [];
  let app: ConsumerApp;

  @Controller()
  class PairController {
    @EventPattern<string>(topicOf('pair'))
    @IdempotentConsumer('pair.first')
    async first(@Payload() value: string): Promise<void> {
      calls.push(`first ${value}`);
    }

    @IdempotentConsumer('pair.second', { retry: { attempts: 3, attemptsPerDelivery: 1 } })
    @EventPattern<string>(topicOf('pair'))
    async second(@Payload() value: string): Promise<void> {
      calls.push(`second ${value}`);
      if (calls.filter((call) => call === `second ${value}`).length < 2) throw new Error('once more');
    }
  }

  @Controller({ path: 'shared' })
  @IdempotentConsumer('shared')
  class SharedController {
    @EventPattern<string>(topicOf('shared'))
    async shared(@Payload() value: string): Promise<void> {
      calls.push(`shared ${value}`);
    }

    @Get()
    page(): string {
      return 'no message';
    }
  }

  @Controller({ scope: Scope.REQUEST })
  class ScopedController {
    constructor(@InjectRepository(Note) private readonly notes: Repository<Note>) {}

    @IdempotentConsumer('scoped')
    @EventPattern<string>(topicOf('scoped'))
    @Transactional()
    async scoped(@Payload() value: string): Promise<void> {
      await this.notes.insert({ id: Number(value) });
    }
  }

  @Controller()
  class SlowController {
    constructor(@InjectRepository(Note) private readonly notes: Repository<Note>) {}

    // Longer than the session timeout of the group.
    @EventPattern<string>(topicOf('slow'))
    @IdempotentConsumer('slow')
    async slow(@Payload() value: string): Promise<void> {
      calls.push(`slow ${value}`);
      await this.notes.insert({ id: Number(value) });
      await setTimeout(7500);
    }
  }

  const controllers = [PairController, SharedController, ScopedController];
  const send = (name: string, value: string): Promise<void> =>
    kafka.send(topicOf(name), { value, headers: { id: `${name} ${value}` } });
  const done = async (name: string): Promise<void> => {
    for (const group of groups) await drained(kafka, group, topicOf(name));
  };

  beforeAll(async () => {
    await kafka.connect();
    await kafka.createTopics(['pair', 'shared', 'scoped', 'slow', 'closing'].map(topicOf));
    app = await startConsumers('postgres', { controllers, servers: groups.map((group) => kafka.server(group)) });
  });
  afterAll(async () => {
    await app?.close();
    await kafka.close();
  });

  // A7, A8: a hybrid app, whose microservices do not inherit its configuration, with two groups.
  it('act once whatever the number of groups, and the rest are counted duplicates', async () => {
    await send('shared', '1');
    await send('shared', '1');
    await done('shared');
    expect(calls.filter((call) => call === 'shared 1')).toHaveLength(1);
    expect(app.events.counts('shared')).toMatchObject({ handled: 1, duplicate: 3 });
  });

  it('of one topic each act once, also when only one of them fails', async () => {
    await send('pair', '1');
    await done('pair');
    expect(calls.filter((call) => call === 'first 1')).toHaveLength(1);
    expect(app.events.counts('pair.first').handled).toBe(1);
    expect(app.events.counts('pair.second').handled).toBe(1);
  });

  it('may be in controllers that are made for each message', async () => {
    await send('scoped', '41');
    await send('scoped', '42');
    await done('scoped');
    expect(await app.count('note', 'id IN (41, 42)')).toBe(2);
    expect(app.events.counts('scoped')).toMatchObject({ handled: 2, duplicate: 2, failed: 0 });
  });

  it('leave the routes of a controller alone', async () => {
    const server = (await app.app.listen(0)) as { address(): { port: number } };
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/shared`);
    expect(await answer.text()).toBe('no message');
  });

  // H1
  it('may take longer than the group waits for a sign of life', async () => {
    const group = `slow-${run}`;
    const [one, two] = await Promise.all(
      [1, 2].map(() => startConsumers('postgres', { controllers: [SlowController], servers: [kafka.server(group)] })),
    );
    try {
      await send('slow', '1');
      await drained(kafka, group, topicOf('slow'));
      expect(calls.filter((call) => call === 'slow 1')).toHaveLength(1);
    } finally {
      await one?.close();
      await two?.close();
    }
  });

  // H3
  it('finish what they handle when the app closes', async () => {
    const group = `closing-${run}`;
    let isEntered = false;
    let leave!: () => void;
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    @Controller()
    class ClosingController {
      constructor(@InjectRepository(Note) private readonly notes: Repository<Note>) {}

      @EventPattern<string>(topicOf('closing'))
      @IdempotentConsumer('closing')
      async work(): Promise<void> {
        isEntered = true;
        await left;
        await this.notes.insert({ id: 1 });
      }
    }
    const closing = await startConsumers('mariadb', { controllers: [ClosingController], servers: [kafka.server(group)] });
    await send('closing', '1');
    await until('the handler runs', () => isEntered);
    const closed = closing.close();
    leave();
    await closed;
    expect(closing.events.counts('closing')).toMatchObject({ handled: 1, failed: 0 });
    await drained(kafka, group, topicOf('closing'));
  });

  it('work on another transport, given an id, and answer requests', async () => {
    @Controller()
    class AnswersController {
      constructor(@InjectRepository(Note) private readonly notes: Repository<Note>) {}

      @MessagePattern('double')
      @IdempotentConsumer('double', { messageId: (context) => context.switchToRpc().getData<{ id?: string }>().id })
      async double(@Payload() { n }: { n: number }): Promise<number> {
        await this.notes.insert({ id: n });
        if (n > 100) throw new Error('too much');
        return 2 * n;
      }
    }
    const options: TcpOptions = { transport: Transport.TCP, options: { port: 0 } };
    const other = await startApp('sqlite', { entities: [Note], controllers: [AnswersController] });
    try {
      const handlers = other.app.connectMicroservice(options);
      const server = Reflect.get(handlers, 'serverInstance') as {
        getHandlers(): Map<string, (data: object, context: object) => Promise<import('rxjs').Observable<unknown>>>;
      };
      const ask = async (data: object): Promise<unknown> => {
        const { lastValueFrom } = await import('rxjs');
        const answer = await server.getHandlers().get('double')?.(data, {});
        return answer && lastValueFrom(answer);
      };
      expect(await ask({ id: 'a', n: 21 })).toBe(42);
      expect(await ask({ id: 'a', n: 21 })).toBeUndefined();
      await expect(ask({ id: 'b', n: 101 })).rejects.toMatchObject({ status: 'error' });
      await expect(ask({ n: 1 })).rejects.toMatchObject({ status: 'error' });
      expect(await other.dataSource.query('SELECT id FROM note')).toEqual([{ id: 21 }]);
      expect(await other.logged()).toEqual([]);
    } finally {
      await other.close();
    }
  });
});

describe('a consumer is refused at boot', () => {
  const start = (...parts: Parameters<typeof startApp>[1][]) => startApp('sqlite', Object.assign({ entities: [Note] }, ...parts));

  it('when two handlers have its name', async () => {
    @Controller()
    class One {
      @EventPattern<string>('a') @IdempotentConsumer('same') async a(): Promise<void> {}
    }
    @Controller()
    class Two {
      @EventPattern<string>('b') @IdempotentConsumer('same') async b(): Promise<void> {}
    }
    await expect(start({ controllers: [One, Two] })).rejects.toMatchObject({
      code: 'OUTBOX_CONSUMER_DUPLICATE',
      message: expect.stringMatching(/One\.a and Two\.b/),
    });
  });

  it('when a controller has two handlers of one topic', async () => {
    @Controller()
    @IdempotentConsumer('shared')
    class Both {
      @EventPattern<string>('a') async a(): Promise<void> {}
      @EventPattern<string>('a') async b(): Promise<void> {}
    }
    await expect(start({ controllers: [Both] })).rejects.toMatchObject({ code: 'OUTBOX_CONSUMER_DUPLICATE' });
  });

  it('when it handles no messages', async () => {
    @Controller()
    class Route {
      @Get() @IdempotentConsumer('route') async get(): Promise<void> {}
    }
    @Injectable()
    class Service {
      @IdempotentConsumer('service') async work(): Promise<void> {}
    }
    const misplaced = { code: 'OUTBOX_CONSUMER_MISPLACED' };
    await expect(start({ controllers: [Route] })).rejects.toMatchObject(misplaced);
    await expect(start({ providers: [Service] })).rejects.toMatchObject(misplaced);
  });

  it('when the controller and the method are both decorated', async () => {
    @Controller()
    @IdempotentConsumer('outer')
    class Twice {
      @EventPattern<string>('a') @IdempotentConsumer('inner') async a(): Promise<void> {}
    }
    await expect(start({ controllers: [Twice] })).rejects.toMatchObject({ code: 'OUTBOX_CONSUMER_MISPLACED' });
  });

  it('when an option is not valid', () => {
    expect(() => IdempotentConsumer('')).toThrow(/1 to 100/);
    expect(() => IdempotentConsumer('c', { onExhausted: 'explode' as 'stop' })).toThrow(/onExhausted/);
    expect(() => IdempotentConsumer('c', { retry: { attempts: 0 } })).toThrow(/retry.attempts/);
    expect(() => IdempotentConsumer('c', { deadLetterTopic: 'no topic' })).toThrow(/deadLetterTopic/);
  });
});
