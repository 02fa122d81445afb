import { Controller, Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Ctx, EventPattern, KafkaContext, MessagePattern, Payload, ServerKafka, Transport } from '@nestjs/microservices';
import { of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { InMemoryBroker } from './in-memory-broker';
import { InMemoryKafkaConsumer } from './in-memory-kafka';

interface Call {
  readonly handler: string;
  readonly payload: unknown;
  readonly context: KafkaContext;
}

async function appWith(broker: InMemoryBroker, ...controllers: (new () => object)[]) {
  class AppModule {}
  Module({ controllers })(AppModule);
  const app = await NestFactory.createMicroservice(AppModule, { strategy: broker.server({ groupId: 'shop' }), logger: false });
  await app.listen();
  return app;
}

describe('InMemoryServer', () => {
  it('calls handlers as Nest’s Kafka server does', async () => {
    const broker = new InMemoryBroker();
    const calls: Call[] = [];

    @Controller()
    class Orders {
      @EventPattern<string>('orders')
      onOrder(@Payload() payload: unknown, @Ctx() context: KafkaContext): void {
        calls.push({ handler: 'onOrder', payload, context });
      }

      @EventPattern<string>('payments', Transport.KAFKA)
      onPayment(@Payload('amount') payload: unknown, @Ctx() context: KafkaContext): void {
        calls.push({ handler: 'onPayment', payload, context });
      }
    }

    const app = await appWith(broker, Orders);
    broker.produce('orders', { key: 'k', value: '{"id":1}', headers: { id: 'm1', json: '[1]' }, timestamp: 7 });
    broker.produce('orders', { key: 'k', value: 'plain' });
    broker.produce('payments', { key: 'k', value: '{"amount":3}' });
    await broker.idle();
    expect(calls.filter(({ handler }) => handler === 'onOrder').map(({ payload }) => payload)).toEqual([{ id: 1 }, 'plain']);
    expect(calls.filter(({ handler }) => handler === 'onPayment').map(({ payload }) => payload)).toEqual([3]);
    const context = calls[0]?.context;
    expect(context).toBeInstanceOf(KafkaContext);
    expect(context?.getTopic()).toBe('orders');
    expect(context?.getMessage()).toMatchObject({
      key: 'k',
      value: { id: 1 },
      headers: { id: 'm1', json: [1] },
      timestamp: '7',
      offset: '0',
    });
    expect(context?.getPartition()).toBe(broker.records('orders')[0]?.partition);
    await context?.getHeartbeat()();
    await context?.getProducer().send({ topic: 'side', messages: [{ key: 'x', value: 'y' }] });
    expect(broker.records('side')).toMatchObject([{ key: 'x', value: 'y' }]);
    await app.close();
  });

  it.each([
    ['throws', () => { throw new Error('no'); }],
    ['rejects', async () => { throw new Error('no'); }],
    ['answers with a failing stream', () => throwError(() => new Error('no'))],
  ])('delivers again when a handler %s', async (_, fail) => {
    const broker = new InMemoryBroker({ redeliveryDelay: 1 });
    let calls = 0;

    @Controller()
    class Orders {
      @EventPattern<string>('orders')
      onOrder(): unknown {
        calls += 1;
        return calls < 3 ? fail() : of(undefined);
      }
    }

    const app = await appWith(broker, Orders);
    broker.produce('orders', { value: '{}' });
    await broker.idle();
    expect(calls).toBe(3);
    await app.close();
  });

  it('calls all handlers of a topic, and delivers to all again when one fails', async () => {
    const broker = new InMemoryBroker({ redeliveryDelay: 1 });
    const calls: string[] = [];

    @Controller()
    class Orders {
      @EventPattern<string>('orders')
      first(): void {
        calls.push('first');
      }

      @EventPattern<string>('orders')
      second(): void {
        calls.push('second');
        if (calls.length < 4) throw new Error('no');
      }
    }

    const app = await appWith(broker, Orders);
    broker.produce('orders', { value: '{}' });
    await broker.idle();
    expect(calls.sort()).toEqual(['first', 'first', 'second', 'second']);
    await app.close();
  });

  it('answers requests on the reply topic', async () => {
    const broker = new InMemoryBroker();

    @Controller()
    class Sums {
      @MessagePattern('sum')
      sum(@Payload() numbers: number[]): number {
        return numbers.reduce((sum, n) => sum + n, 0);
      }
    }

    const app = await appWith(broker, Sums);
    const replied = new Promise<unknown>((resolve) => {
      broker.consume({ groupId: 'client', topics: ['sum.reply'], eachMessage: ({ value }) => resolve(String(value)) });
    });
    const headers = { kafka_correlationId: 'c-1', kafka_replyTopic: 'sum.reply' };
    broker.produce('sum', { value: '[1,2,3]', headers });
    expect(await replied).toBe('6');
    await app.close();
  });

  it('goes on after a restart, delivers nothing after close, and can be closed twice', async () => {
    const broker = new InMemoryBroker();
    const got: unknown[] = [];

    @Controller()
    class Orders {
      @EventPattern<string>('orders')
      onOrder(@Payload() payload: unknown): void {
        got.push(payload);
      }
    }

    const first = await appWith(broker, Orders);
    broker.produce('orders', { key: 'k', value: '1' });
    await broker.idle();
    await first.close();
    await first.close();
    broker.produce('orders', { key: 'k', value: '2' });
    await broker.idle();
    expect(got).toEqual(['1']);
    const second = await appWith(broker, Orders);
    await broker.idle();
    expect(got).toEqual(['1', '2']);
    await second.close();
  });

  it('is a ServerKafka with a status', async () => {
    const broker = new InMemoryBroker();
    const server = broker.server({ groupId: 'shop' });
    expect(server).toBeInstanceOf(ServerKafka);
    const states: unknown[] = [];
    server.status.subscribe((state) => states.push(state));
    await server.listen(() => {});
    expect(server.unwrap()).toHaveLength(3);
    await server.close();
    expect(states).toEqual(['connected', 'connected', 'stopped', 'disconnected', 'disconnected'].filter((s, n, all) => s !== all[n - 1]));
  });
});

it('takes a single topic, as Nest 10.0 subscribes', async () => {
  const broker = new InMemoryBroker();
  const consumer = new InMemoryKafkaConsumer(broker, new Logger('test'), 'group', true);
  await consumer.subscribe({ topic: 'a' });
  const seen: unknown[] = [];
  await consumer.run({
    eachMessage: async (payload) => {
      seen.push(payload);
    },
  });
  broker.produce('a', { value: 'x' });
  await broker.idle();
  expect(seen).toHaveLength(1);
  await consumer.stop();
});

it('leaves paused partitions out until they are resumed', async () => {
  const broker = new InMemoryBroker({ redeliveryDelay: 1, partitions: 1 });
  const seen: string[] = [];

  @Controller()
  class Orders {
    @EventPattern<string>('orders')
    onOrder(@Payload() payload: string, @Ctx() context: KafkaContext): void {
      seen.push(payload);
      if (seen.length > 1) return;
      context.getConsumer().pause([{ topic: 'orders', partitions: [context.getPartition()] }]);
      throw new Error('stop here');
    }

    @EventPattern<string>('others')
    onOther(@Payload() payload: string): void {
      seen.push(payload);
    }
  }

  const app = await appWith(broker, Orders);
  broker.produce('orders', { value: 'a' });
  await broker.idle();
  broker.produce('orders', { value: 'b' });
  broker.produce('others', { value: 'c' });
  await broker.idle();
  expect(seen).toEqual(['a', 'c']);
  await app.close();
  const next = await appWith(broker, Orders);
  await broker.idle();
  expect(seen).toEqual(['a', 'c', 'a', 'b']);
  await next.close();
});
