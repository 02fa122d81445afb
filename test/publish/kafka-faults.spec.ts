import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CompressionTypes } from 'kafkajs';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Publisher } from '../../libs/outbox/src/publish/publisher';
import { type OwnServer, startOwn } from '../services/index.mjs';
import { KafkaBroker } from './kafka-broker';
import { type ClientSettings, KAFKA_CLIENTS } from './kafka-clients';
import { recordFor, summaryOf, untilAcknowledged, valuesByKey } from './publisher-acceptance';

const TIMEOUT = 20_000;
/** A killed broker may register again only when its session has run out, and on a busy machine starts slowly. */
const RESTART_TIMEOUT = 180_000;

let server: OwnServer;
let onlooker: KafkaBroker;

beforeAll(async () => {
  server = await startOwn('kafka');
  onlooker = await new KafkaBroker(server.info.brokers ?? []).connect();
});
afterAll(async () => {
  await onlooker?.close();
  await server?.remove();
});

describe.each(KAFKA_CLIENTS)('the $client publisher and a broker in trouble', ({ create: publisherOf }) => {
  const publishers: Publisher[] = [];

  function create(settings: Omit<ClientSettings, 'brokers'> = {}): Publisher {
    const publisher = publisherOf({ brokers: onlooker.brokers, ...settings })();
    publishers.push(publisher);
    return publisher;
  }

  const recordsFor = (topic: string, count: number, value = (n: number) => `${n}`) =>
    Array.from({ length: count }, (_, n) => recordFor(topic, { key: `k${n % 10}`, value: value(n) }));

  afterEach(async () => {
    await Promise.all(publishers.splice(0).map((publisher) => publisher.close()));
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

  it('compresses', async () => {
    const topic = await onlooker.createTopic({ maxRecordBytes: 50_000 });
    const records = recordsFor(topic, 100, (n) => `${n}`.padEnd(10_000, ' compress me'));
    const outcomes = await create({ gzip: true }).publish(records, { timeout: TIMEOUT });
    expect(summaryOf(outcomes)).toEqual(['acknowledged']);
    expect(valuesByKey(await onlooker.read(topic))).toEqual(valuesByKey(records));
  });
});

describe('the kafkajs publisher', () => {
  it('creates a missing topic when it may', async () => {
    const publisher = kafkaPublisher({ brokers: onlooker.brokers, producer: { allowAutoTopicCreation: true } })();
    const topic = `made-${Date.now()}`;
    await untilAcknowledged(publisher, [recordFor(topic)]);
    expect(await onlooker.count(topic)).toBeGreaterThanOrEqual(1);
    await publisher.close();
  });

  it('takes the options of Nest’s ClientKafka', async () => {
    const topic = await onlooker.createTopic();
    const publisher = kafkaPublisher({
      client: { clientId: 'nest', brokers: onlooker.brokers },
      producer: { allowAutoTopicCreation: false },
      send: { acks: -1, compression: CompressionTypes.GZIP },
    })();
    await publisher.connect();
    expect(summaryOf(await publisher.publish([recordFor(topic)], { timeout: TIMEOUT }))).toEqual(['acknowledged']);
    await publisher.close();
  });
});
