import { randomUUID } from 'node:crypto';
import { Controller } from '@nestjs/common';
import { EventPattern } from '@nestjs/microservices';
import { IdempotentConsumer } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ConsumerApp, startConsumers } from './consumer-app';
import { KafkaSide, type ReceivedRecord } from './kafka-side';
import { until } from './until';

describe('a dead letter', () => {
  const topic = `letters-${randomUUID().slice(0, 8)}`;
  const kafka = new KafkaSide();
  let app: ConsumerApp;

  @Controller()
  class LettersController {
    @EventPattern<string>(topic)
    @IdempotentConsumer('letters', { retry: { attempts: 1 } })
    async fail(): Promise<void> {
      throw new Error('never');
    }
  }

  beforeAll(async () => {
    await kafka.connect();
    await kafka.createTopics([topic, `${topic}.dlt`]);
    app = await startConsumers('mysql', {
      controllers: [LettersController],
      servers: [kafka.server(topic, { parser: { keepBinary: true } })],
      outbox: { publisher: kafkaPublisher({ clientId: topic, brokers: kafka.brokers }), relay: {} },
    });
  });
  afterAll(async () => {
    await app?.close();
    await kafka.close();
  });

  it('reaches its topic with the bytes and headers of the message', async () => {
    const text = '{ "spaces" : 1.0, "big": 12345678901234567890, "smile": "😀" }';
    const binary = Buffer.from([0xff, 0x00, 0x7f]);
    const common = { event_type: 'letter.sent', tenant_id: 't', correlation_id: 'c', mine: 'kept' };
    await kafka.send(
      topic,
      { key: 'k1', value: text, headers: { ...common, id: 'm1' } },
      { key: Buffer.alloc(200, 'x'), value: binary, headers: { ...common, id: 'm2' } },
      { key: 'k3', value: null, headers: { ...common, id: 'm3' } },
    );
    let letters: ReceivedRecord[] = [];
    await until('the dead letters are there', async () => {
      letters = await kafka.read(`${topic}.dlt`);
      return letters.length === 3;
    });
    const [one, two, three] = ['m1', 'm2', 'm3'].map((id) => letters.find(({ headers }) => headers['dlt_id'] === id));
    expect(one?.value?.toString()).toBe(text);
    expect(one?.key?.toString()).toBe('k1');
    expect(one?.headers).toMatchObject({ ...common, dlt_topic: topic, dlt_offset: '0', dlt_attempts: '1', dlt_reason: 'never' });
    expect(one?.headers['id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(one?.headers).not.toHaveProperty('dlt_base64');
    expect(JSON.parse(two?.headers['dlt_base64'] ?? '')).toEqual(['value']);
    expect(Buffer.from(two?.value?.toString() ?? '', 'base64')).toEqual(binary);
    expect(two?.headers['dlt_key']).toBe('x'.repeat(200));
    expect(three?.value).toBeNull();
  });
});
