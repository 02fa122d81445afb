import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CompressionTypes } from 'kafkajs';
import { kafkaPublisher, type KafkaPublisherOptions } from 'nestjs-transactional-outbox/kafkajs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Publisher } from '../../libs/outbox/src/publish/publisher';
import { type OwnServer, startOwn } from '../services/index.mjs';
import { KafkaBroker } from './kafka-broker';
import { recordFor, summaryOf, untilAcknowledged, valuesByKey } from './publisher-acceptance';

const TIMEOUT = 20_000;
/** A killed broker may register again only when its session has run out, and on a busy machine starts slowly. */
const RESTART_TIMEOUT = 180_000;

describe('the kafkajs publisher and a broker in trouble', () => {
  let server: OwnServer;
  let onlooker: KafkaBroker;
  const publishers: Publisher[] = [];

  function create(options: Partial<KafkaPublisherOptions> = {}): Publisher {
    const publisher = kafkaPublisher({ clientId: 'faults', brokers: onlooker.brokers, ...options } as KafkaPublisherOptions)();
    publishers.push(publisher);
    return publisher;
  }

  const recordsFor = (topic: string, count: number, value = (n: number) => `${n}`) =>
    Array.from({ length: count }, (_, n) => recordFor(topic, { key: `k${n % 10}`, value: value(n) }));

  beforeAll(async () => {
    server = await startOwn('kafka');
    onlooker = await new KafkaBroker(server.info.brokers ?? []).connect();
  });
  afterEach(async () => {
    await Promise.all(publishers.splice(0).map((publisher) => publisher.close()));
  });
  afterAll(async () => {
    await onlooker?.close();
    await server?.remove();
  });

  it('keeps its deadline while the broker is frozen, and leaves at most one late copy', async () => {
    const topic = await onlooker.createTopic({ partitions: 1 });
    const publisher = create();
    await untilAcknowledged(publisher, recordsFor(topic, 1));
    await server.kill('SIGSTOP');
    const records = recordsFor(topic, 100);
    for (let round = 0; round < 3; round += 1) {
      expect(summaryOf(await publisher.publish(records, { timeout: 1_000 }))).toEqual(['unknown TIMEOUT']);
    }
    await server.kill('SIGCONT');
    await untilAcknowledged(publisher, records);
    await sleep(3_000);
    const stored = await onlooker.read(topic);
    // Once as acknowledged, and once more where the first try was in the broker's own buffers already: see
    // `ProducerSockets`. Neither of the other two tries had a connection that the broker had answered on.
    expect([101, 201]).toContain(stored.length);
    for (const { messageId } of records) {
      const copies = stored.filter(({ headers }) => headers.some(([name, value]) => name === 'id' && value === messageId));
      expect(copies.length).toBeLessThanOrEqual(2);
    }
  });

  it('ends in time when it is closed while the broker is frozen', async () => {
    const topic = await onlooker.createTopic();
    const publisher = create();
    await untilAcknowledged(publisher, recordsFor(topic, 1));
    await server.kill('SIGSTOP');
    const running = publisher.publish(recordsFor(topic, 10), { timeout: 600_000 });
    await sleep(200);
    await publisher.close();
    expect(summaryOf(await running)).toEqual(['unknown TIMEOUT']);
    await server.kill('SIGCONT');
  });

  it('goes on with a broker whose log was wiped', { timeout: RESTART_TIMEOUT }, async () => {
    const topic = await onlooker.createTopic();
    const both = [create({ idempotent: false }), create({ idempotent: true })];
    for (const publisher of both) await untilAcknowledged(publisher, recordsFor(topic, 50));
    await server.kill('SIGKILL');
    const data = server.info.dataDir ?? '';
    const logs = (await readdir(data)).filter((name) => name.startsWith(topic));
    expect(logs).toHaveLength(3);
    await Promise.all(logs.map((name) => rm(join(data, name), { recursive: true })));
    await server.restart();
    const records = recordsFor(topic, 50);
    for (const publisher of both) await untilAcknowledged(publisher, records);
    expect(valuesByKey(await onlooker.read(topic))).toEqual(valuesByKey([...records, ...records]));
  });

  it.each([false, true])('goes on after failed sends and loses nothing, idempotent: %s', async (idempotent) => {
    const topic = await onlooker.createTopic({ maxRecordBytes: 20_000 });
    const publisher = create({ idempotent });
    for (let round = 0; round < 5; round += 1) {
      const records = recordsFor(topic, 30, (n) => (n === 29 ? 'x'.repeat(30_000) : `${round}:${n}`));
      const outcomes = await publisher.publish(records, { timeout: TIMEOUT });
      expect(summaryOf(outcomes)).toEqual(['acknowledged', 'refused MESSAGE_TOO_LARGE']);
    }
    const values = (await onlooker.read(topic)).map(({ value }) => value);
    expect(values).toHaveLength(5 * 29);
    expect(new Set(values).size).toBe(5 * 29);
  });

  it('sends again what a topic lost when it was deleted, once it is there again', async () => {
    const [topic, other] = [await onlooker.createTopic(), await onlooker.createTopic()];
    const publisher = create();
    await untilAcknowledged(publisher, [...recordsFor(topic, 10), ...recordsFor(other, 10)]);
    await onlooker.deleteTopic(topic);
    const records = [...recordsFor(topic, 10), ...recordsFor(other, 10)];
    let outcomes = await publisher.publish(records, { timeout: TIMEOUT });
    // The broker may take its time to forget it.
    while (outcomes[0]?.status === 'acknowledged') outcomes = await publisher.publish(records, { timeout: TIMEOUT });
    expect(summaryOf(outcomes.slice(0, 10))).toEqual(['unknown UNKNOWN_TOPIC_OR_PARTITION']);
    await untilAcknowledged(publisher, recordsFor(other, 10));
    const again = await new KafkaBroker(onlooker.brokers).connect();
    await again.createTopic({}, topic);
    await untilAcknowledged(publisher, recordsFor(topic, 10));
    expect(await again.count(topic)).toBeGreaterThanOrEqual(10);
    await again.close();
    await onlooker.close();
    onlooker = await new KafkaBroker(onlooker.brokers).connect();
  });

  it('creates a missing topic when it may', async () => {
    const publisher = create({ producer: { allowAutoTopicCreation: true } });
    const topic = `made-${Date.now()}`;
    await untilAcknowledged(publisher, recordsFor(topic, 10));
    expect(await onlooker.count(topic)).toBeGreaterThanOrEqual(10);
  });

  it('compresses', async () => {
    const topic = await onlooker.createTopic({ maxRecordBytes: 50_000 });
    const records = recordsFor(topic, 100, (n) => `${n}`.padEnd(10_000, ' compress me'));
    const outcomes = await create({ compression: CompressionTypes.GZIP }).publish(records, { timeout: TIMEOUT });
    expect(summaryOf(outcomes)).toEqual(['acknowledged']);
    expect(valuesByKey(await onlooker.read(topic))).toEqual(valuesByKey(records));
  });

  it('takes the options of Nest’s ClientKafka', async () => {
    const topic = await onlooker.createTopic();
    const publisher = kafkaPublisher({
      client: { clientId: 'nest', brokers: onlooker.brokers },
      producer: { allowAutoTopicCreation: false },
      send: { acks: -1, compression: CompressionTypes.GZIP },
    })();
    publishers.push(publisher);
    await publisher.connect();
    expect(summaryOf(await publisher.publish(recordsFor(topic, 10), { timeout: TIMEOUT }))).toEqual(['acknowledged']);
  });
});
