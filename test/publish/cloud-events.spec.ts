import { randomUUID } from 'node:crypto';
import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { currentMessageContext, IdempotentConsumer, type MessageContext, Outbox, OutboxEvent, TransactionRunner, withMessageContext } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ConsumerApp, drained, startConsumers } from '../consume/consumer-app';
import { KafkaSide } from '../consume/kafka-side';
import { until } from '../consume/until';
import { KafkaBroker, type RecordBytes } from './kafka-broker';

const run = randomUUID().slice(0, 8);
const topic = `cloud-${run}`;
const group = `cloud-${run}`;
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

@OutboxEvent({ type: 'order.created', topic, key: (event: OrderCreated) => event.orderId, aggregateType: 'order' })
class OrderCreated {
  constructor(readonly orderId: string) {}
}

/**
 * Reads a record by the text of the binding (CloudEvents 1.0, Kafka, 3.2) and of the specification, not by this
 * library: attributes are the headers that begin with `ce_`, `datacontenttype` is `content-type`, data is the value.
 */
function readByTheBook({ headers, value }: RecordBytes): Record<string, string | null> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const all = headers.map(([name, bytes]) => [name, decoder.decode(bytes)] as const);
  const contentType = all.find(([name]) => name === 'content-type')?.[1];
  if (contentType?.toLowerCase().startsWith('application/cloudevents')) throw new Error('it is in structured mode');
  const attributes = Object.fromEntries(all.filter(([name]) => name.startsWith('ce_')).map(([name, text]) => [name.slice(3), text]));
  for (const [name, text] of Object.entries(attributes)) {
    if (!/^[a-z0-9]{1,20}$/.test(name)) throw new Error(`${name} is not the name of an attribute`);
    if (text === '' || /\p{Cc}/u.test(text)) throw new Error(`${name} has no value that an attribute may have`);
  }
  for (const required of ['id', 'source', 'type', 'specversion']) {
    if (attributes[required] === undefined) throw new Error(`${required} is missing`);
  }
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(attributes['time'] ?? '')) throw new Error('time is not of RFC 3339');
  return { ...attributes, ...(contentType && { datacontenttype: contentType }), data: value === null ? null : decoder.decode(value) };
}

describe.each(['mysql', 'postgres'] as const)('CloudEvents from %s', (database) => {
  const kafka = new KafkaSide();
  const handled: { orderId: string; context: MessageContext }[] = [];
  let onlooker: KafkaBroker;
  let app: ConsumerApp;

  @Controller()
  class OrdersController {
    @EventPattern<string>(topic)
    @IdempotentConsumer('cloud.orders', { events: [OrderCreated], retry: { attempts: 1 } })
    async follow(@Payload() { orderId }: OrderCreated): Promise<void> {
      if (orderId.startsWith('poison')) throw new Error('cannot be followed');
      handled.push({ orderId, context: currentMessageContext() });
    }
  }

  const emit = (work: (outbox: Outbox) => void, context: MessageContext = {}): Promise<void> =>
    withMessageContext(context, () => app.app.get(TransactionRunner).run(async () => work(app.app.get(Outbox))));
  const recordOf = async (id: string, header = 'ce_id', place = topic): Promise<RecordBytes> => {
    const find = async () => (await onlooker.readBytes(place)).findLast((record) => record.headers.some(([name, bytes]) => name === header && bytes.toString() === id));
    await until('it is published', async () => (await find()) !== undefined);
    return (await find()) as RecordBytes;
  };

  beforeAll(async () => {
    await kafka.connect();
    onlooker = await new KafkaBroker(kafka.brokers).connect();
    for (const name of [topic, `${topic}.dlt`]) await onlooker.createTopic({ partitions: 1 }, name).catch(() => undefined);
    app = await startConsumers(database, {
      controllers: [OrdersController],
      servers: [kafka.server(`${group}-${database}`)],
      outbox: { publisher: kafkaPublisher({ brokers: kafka.brokers }), cloudEvents: { source: '/shop/orders' }, relay: { enabled: true } },
    });
  });
  afterAll(async () => {
    await app?.close();
    await Promise.all([onlooker?.close(), kafka.close()]);
  });

  it('are what the specification says, with the trace, and are read back by a consumer', async () => {
    const orderId = randomUUID();
    const before = Date.now();
    await emit((outbox) => outbox.emit(new OrderCreated(orderId)), { traceparent, correlationId: 'c-1', causationId: 'c-0', tenantId: 'acme', headers: { tracestate: 'vendor=1' } });
    await until('it is handled', () => handled.some((one) => one.orderId === orderId));
    const [{ message_id: id = '' } = {}] = (await app.messages(topic)).slice(-1);
    const record = await recordOf(id);
    const event = readByTheBook(record);
    expect(record.key?.toString()).toBe(orderId);
    expect(event).toEqual({
      specversion: '1.0',
      id,
      source: '/shop/orders',
      type: 'order.created',
      time: new Date(record.timestamp).toISOString(),
      subject: orderId,
      aggregatetype: 'order',
      tenantid: 'acme',
      correlationid: 'c-1',
      causationid: 'c-0',
      traceparent,
      tracestate: 'vendor=1',
      datacontenttype: 'application/json',
      data: JSON.stringify({ orderId }),
    });
    expect(Math.abs(record.timestamp - before)).toBeLessThan(60_000);
    expect(handled.at(-1)?.context).toMatchObject({ causationId: id, correlationId: 'c-1', tenantId: 'acme', traceparent, headers: { tracestate: 'vendor=1' } });
  });

  it('are handled once, in whichever of the two forms their copies come', async () => {
    const orderId = randomUUID();
    await emit((outbox) => outbox.emit(new OrderCreated(orderId)));
    await until('it is handled', () => handled.some((one) => one.orderId === orderId));
    const [{ message_id: id = '' } = {}] = (await app.messages(topic)).slice(-1);
    const value = JSON.stringify({ orderId });
    await kafka.send(topic, { key: orderId, value, headers: { id, event_type: 'order.created' } });
    await kafka.send(topic, { key: orderId, value, headers: { ce_specversion: '1.0', ce_id: id, ce_source: '/shop/orders', ce_type: 'order.created' } });
    await drained(kafka, `${group}-${database}`, topic);
    expect(handled.filter((one) => one.orderId === orderId)).toHaveLength(1);
  });

  it('of two others may have the same id', async () => {
    const orderId = randomUUID();
    const ce = { ce_specversion: '1.0', ce_id: `n-${orderId}`, ce_type: 'order.created' };
    for (const source of ['/a', '/b', '/a', '/b']) {
      await kafka.send(topic, { key: 'k', value: JSON.stringify({ orderId }), headers: { ...ce, ce_source: source } });
    }
    await drained(kafka, `${group}-${database}`, topic);
    expect(handled.filter((one) => one.orderId === orderId)).toHaveLength(2);
  });

  it('are dead letters of their own when they fail, with what they were in dlt_ce_…', async () => {
    const [orderId, foreign] = [`poison-${randomUUID()}`, `n-${randomUUID()}`];
    await emit((outbox) => outbox.emit(new OrderCreated(orderId)), { correlationId: 'c-2', tenantId: 'acme' });
    const [{ message_id: id = '' } = {}] = (await app.messages(topic)).slice(-1);
    const failed = readByTheBook(await recordOf(id));
    const letter = await recordOf(id, 'dlt_ce_id', `${topic}.dlt`);
    const headers = Object.fromEntries(letter.headers.map(([name, bytes]) => [name, bytes.toString()]));
    for (const attribute of ['specversion', 'id', 'source', 'type', 'time', 'subject', 'correlationid', 'tenantid']) {
      expect(headers[`dlt_ce_${attribute}`]).toBe(failed[attribute]);
    }
    expect(headers).toMatchObject({ dlt_reason: 'cannot be followed', dlt_topic: topic });
    const event = readByTheBook(letter);
    expect(event).toMatchObject({ type: 'order.created', source: '/shop/orders', correlationid: 'c-2', tenantid: 'acme', data: failed['data'], datacontenttype: 'application/json' });
    expect(event['id']).not.toBe(id);
    // One of somebody else, too, whose id is no UUID.
    const ce = { ce_specversion: '1.0', ce_id: foreign, ce_type: 'order.created', ce_source: '/elsewhere', ce_dataschema: '/schema', 'content-type': 'application/vnd.order+json' };
    await kafka.send(topic, { key: 'k', value: JSON.stringify({ orderId }), headers: ce });
    const other = Object.fromEntries((await recordOf(foreign, 'dlt_ce_id', `${topic}.dlt`)).headers.map(([name, bytes]) => [name, bytes.toString()]));
    expect(other).toMatchObject({ dlt_ce_source: '/elsewhere', dlt_ce_dataschema: '/schema', ce_source: '/shop/orders', 'content-type': 'application/vnd.order+json' });
    expect(other).not.toHaveProperty('ce_dataschema');
  });

  it('have no data where the message is a tombstone, and may not forge what the outbox says', async () => {
    const messageId = randomUUID();
    await emit((outbox) => outbox.emitRaw({ topic, type: 'order.forgotten', key: 'k', payload: null, messageId }));
    expect(readByTheBook(await recordOf(messageId))).toMatchObject({ type: 'order.forgotten', data: null });
    const forged = emit((outbox) => outbox.emitRaw({ topic, type: 'x', payload: '{}', headers: { ce_source: '/elsewhere' } }));
    await expect(forged).rejects.toMatchObject({ code: 'OUTBOX_EVENT_INVALID', fields: { 'headers.ce_source': [expect.any(String)] } });
  });
});
