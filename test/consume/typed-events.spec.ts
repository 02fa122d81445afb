import { randomUUID } from 'node:crypto';
import { Controller } from '@nestjs/common';
import { Ctx, EventPattern, type KafkaContext, Payload } from '@nestjs/microservices';
import { Type } from 'class-transformer';
import { IsInt, Min, ValidateNested } from 'class-validator';
import { currentMessageContext, IdempotentConsumer, Outbox, OutboxEvent } from 'nestjs-transactional-outbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp } from '../setup/app';
import { NoteWritten } from '../setup/notes';
import { type ConsumerApp, drained, startConsumers } from './consumer-app';
import { KafkaSide } from './kafka-side';

class Line {
  @IsInt() @Min(1) quantity!: number;
}

@OutboxEvent({ type: 'order.created', topic: 'orders' })
class OrderCreated {
  @IsInt() orderId!: number;
  @ValidateNested({ each: true }) @Type(() => Line) lines!: Line[];

  get total(): number {
    return this.lines.reduce((sum, { quantity }) => sum + quantity, 0);
  }
}

@OutboxEvent({ type: 'order.cancelled', topic: 'orders' })
class OrderCancelled {
  @IsInt() orderId!: number;
}

/** The same for a consumer that has Nest decode values, and for one that gets bytes. */
describe.each([false, true])('typed events, with keepBinary %s', (keepBinary) => {
  const run = randomUUID().slice(0, 8);
  const topic = `orders-${run}`;
  const group = `typed-${run}`;
  const kafka = new KafkaSide();
  const got: object[] = [];
  const contexts: object[] = [];
  let headers: object = {};
  let app: ConsumerApp;

  @Controller()
  class OrdersController {
    constructor(private readonly outbox: Outbox) {}

    @EventPattern<string>(topic)
    @IdempotentConsumer('orders', { events: [OrderCreated, OrderCancelled] })
    async follow(@Payload() event: OrderCreated | OrderCancelled, @Ctx() context: KafkaContext): Promise<void> {
      got.push(event);
      headers = context.getMessage().headers ?? {};
      contexts.push(currentMessageContext());
      this.outbox.emit(NoteWritten.of(event.orderId));
    }
  }

  beforeAll(async () => {
    await kafka.connect();
    await kafka.createTopics([topic]);
    app = await startConsumers('sqlite', {
      controllers: [OrdersController],
      servers: [kafka.server(group, { parser: { keepBinary } })],
    });
  });
  afterAll(async () => {
    await app?.close();
    await kafka.close();
  });

  async function send(value: string | Buffer | null, more: Record<string, string> = {}): Promise<string> {
    const id = randomUUID();
    await kafka.send(topic, { key: 'k', value, headers: { id, event_type: 'order.created', ...more } });
    await drained(kafka, group, topic);
    return id;
  }
  const order = { orderId: 7, lines: [{ quantity: 2 }, { quantity: 3 }] };

  it('arrive as instances of their class', async () => {
    await send(JSON.stringify(order));
    expect(got.at(-1)).toBeInstanceOf(OrderCreated);
    expect((got.at(-1) as OrderCreated).total).toBe(5);
    await send('{"orderId":8}', { event_type: 'order.cancelled' });
    expect(got.at(-1)).toBeInstanceOf(OrderCancelled);
  });

  it('of other types are acknowledged and leave no trace', async () => {
    const [before, handled] = [await app.count('consumed_message'), got.length];
    await send('no JSON at all', { event_type: 'order.shipped' });
    await kafka.send(topic, { value: 'nor this' });
    await drained(kafka, group, topic);
    expect(got).toHaveLength(handled);
    expect(await app.count('consumed_message')).toBe(before);
    expect(app.events.counts('orders').ignored).toBe(2);
  });

  it('may have fields that this consumer does not know', async () => {
    await send(JSON.stringify({ ...order, orderId: 9, discount: { percent: 5 } }));
    expect(got.at(-1)).toMatchObject({ orderId: 9 });
  });

  it.each([
    ['a field that is not valid', JSON.stringify({ ...order, lines: [{ quantity: 1 }, { quantity: 0 }] }), 'OUTBOX_EVENT_INVALID', 'lines.1.quantity'],
    ['a value that is not JSON', 'hello', 'OUTBOX_PAYLOAD_UNREADABLE', 'not JSON'],
    ['a value that is cut off', '{"orderId":', 'OUTBOX_PAYLOAD_UNREADABLE', 'not JSON'],
    ['a value that is no object', '[1]', 'OUTBOX_PAYLOAD_UNREADABLE', 'not a JSON object'],
    ['no value', null, 'OUTBOX_PAYLOAD_UNREADABLE', 'tombstone'],
  ])('with %s go to the dead-letter topic at once', async (_, value, code, reason) => {
    const handled = got.length;
    const id = await send(value);
    expect(got).toHaveLength(handled);
    const letter = (await app.messages(`${topic}.dlt`)).at(-1);
    expect(letter).toMatchObject({ payload: value, message_key: 'k', event_type: 'order.created' });
    expect(letter?.headers).toMatchObject({ dlt_id: id, dlt_error: code, dlt_reason: expect.stringContaining(reason) });
  });

  it('whose value is not text keep its bytes in the dead letter', async () => {
    const bytes = Buffer.from([0x00, 0xff, 0x80, 0x7b]);
    await send(bytes, { trace: 'a\u0000b' });
    const letter = (await app.messages(`${topic}.dlt`)).at(-1);
    expect(JSON.parse(letter?.headers['dlt_base64'] ?? '[]')).toEqual(['header trace', 'value']);
    expect(Buffer.from(letter?.payload ?? '', 'base64')).toEqual(bytes);
    expect(Buffer.from(letter?.headers['trace'] ?? '', 'base64').toString()).toBe('a\u0000b');
  });

  it('pass their context on to the events that the handler emits', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const id = await send(JSON.stringify(order), { correlation_id: 'c1', traceparent, tenant_id: 't1', causation_id: 'before' });
    expect((await app.messages('notes')).at(-1)).toMatchObject({
      correlation_id: 'c1',
      causation_id: id,
      traceparent,
      tenant_id: 't1',
    });
    expect(contexts.at(-1)).toMatchObject({ correlationId: 'c1', causationId: id });
    const first = await send(JSON.stringify(order));
    expect((await app.messages('notes')).at(-1)).toMatchObject({ correlation_id: first, causation_id: first, tenant_id: null });
    // What does not fit our columns must not stop a handler.
    await send(JSON.stringify(order), { correlation_id: 'c'.repeat(300) });
    expect((await app.messages('notes')).at(-1)?.correlation_id).toHaveLength(36);
  });

  it('name their trail in the log when they fail', async () => {
    const lines: string[] = [];
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    @Controller()
    class FailingController {
      @EventPattern<string>('orders')
      @IdempotentConsumer('failing', { events: [OrderCreated], retry: { attempts: 1 } })
      async fail(): Promise<void> {
        throw new Error('no');
      }
    }
    const keep = (line: string): number => lines.push(line);
    const failing = await startApp('sqlite', { controllers: [FailingController], logger: { log: keep, warn: keep, error: keep, debug: keep } });
    try {
      failing.app.connectMicroservice({ strategy: failing.broker.server({ groupId: 'g' }) });
      await failing.app.startAllMicroservices();
      const headers = { id: 'm1', event_type: 'order.created', correlation_id: 'c1', traceparent };
      for (let copy = 0; copy < 2; copy++) failing.broker.produce('orders', { key: 'k', value: JSON.stringify(order), headers });
      await failing.broker.idle();
      const about = lines.filter((line) => line.includes('message m1'));
      expect(about).toHaveLength(3);
      for (const line of about) expect(line).toContain(`(correlation c1, trace ${traceparent})`);
    } finally {
      await failing.close();
    }
  });

  it('that come by change data capture have their own headers unpacked', async () => {
    await send(JSON.stringify(order), { headers: '{"region":"eu","id":"not this"}' });
    expect(headers).toMatchObject({ region: 'eu', event_type: 'order.created' });
    expect(headers).not.toHaveProperty('headers');
    expect((headers as { id: string }).id).not.toBe('not this');
  });
});
