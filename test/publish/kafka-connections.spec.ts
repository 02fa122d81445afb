import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { platformaticPublisher } from 'nestjs-transactional-outbox/platformatic';
import type { PublisherFactory, TopicSpec } from 'nestjs-transactional-outbox';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Publisher } from '../../libs/outbox/src/publish/publisher';
import { kafkaJava } from '../services/index.mjs';
import { KafkaBroker } from './kafka-broker';
import { KAFKA_CLIENTS } from './kafka-clients';
import { recordFor, summaryOf, untilAcknowledged, valuesByKey } from './publisher-acceptance';
import { type SecureKafka, startSecureKafka } from './secure-kafka';

/** Milliseconds after which the broker ends a connection on which nothing is said. */
const IDLE = 1_500;
const timeout = 20_000;

interface Credentials {
  readonly password?: string;
  readonly ca?: string;
  readonly topics?: readonly TopicSpec[];
}

const java = await kafkaJava().catch((error: unknown) => {
  if (process.env.CI) throw error;
  return null;
});

describe.skipIf(java === null)('connections to Kafka', { timeout: 120_000 }, () => {
  let kafka: SecureKafka;
  let onlooker: KafkaBroker;
  const publishers: Publisher[] = [];
  const open = (factory: PublisherFactory): Publisher => {
    const publisher = factory();
    publishers.push(publisher);
    return publisher;
  };

  const CLIENTS: [string, (given: Credentials) => PublisherFactory][] = [
    [
      'kafkajs',
      ({ password = kafka.password, ca, topics }) =>
        kafkaPublisher({
          clientId: 'test',
          brokers: [kafka.secure],
          ssl: ca === undefined ? true : { ca },
          sasl: { mechanism: 'plain', username: kafka.username, password },
          ...(topics && { topics }),
        }),
    ],
    [
      'kafkajs, with the options of Nest’s ClientKafka',
      ({ password = kafka.password, ca, topics }) =>
        kafkaPublisher({
          client: { clientId: 'test', brokers: [kafka.secure], ssl: ca === undefined ? true : { ca }, sasl: { mechanism: 'plain', username: kafka.username, password } },
          ...(topics && { topics }),
        }),
    ],
    [
      'platformatic',
      ({ password = kafka.password, ca, topics }) =>
        platformaticPublisher({
          clientId: 'test',
          bootstrapBrokers: [kafka.secure],
          tls: ca === undefined ? {} : { ca },
          sasl: { mechanism: 'PLAIN', username: kafka.username, password },
          ...(topics && { topics }),
        }),
    ],
  ];

  beforeAll(async () => {
    kafka = await startSecureKafka({ idle: IDLE });
  });
  beforeEach(async () => {
    onlooker = await new KafkaBroker([kafka.open]).connect();
  });
  afterEach(async () => {
    await Promise.all(publishers.splice(0).map((publisher) => publisher.close()));
    await onlooker.close();
  });
  afterAll(() => kafka?.remove());

  it.each(CLIENTS)('publishes and makes topics through TLS and SASL: %s', async (_, create) => {
    const topic = `t-${randomUUID()}`;
    const records = Array.from({ length: 20 }, (_record, n) => recordFor(topic, { key: `k${n % 3}`, value: `${n}` }));
    const publisher = open(create({ ca: kafka.certificate, topics: [{ topic, partitions: 2 }] }));
    await publisher.connect();
    await untilAcknowledged(publisher, records);
    expect(await onlooker.leaders(topic)).toHaveLength(2);
    expect(valuesByKey(await onlooker.read(topic))).toEqual(valuesByKey(records));
  });

  it.each(CLIENTS)('says what is wrong through Nest’s Logger and nowhere else, and no secrets: %s', async (_, create) => {
    const lines: string[] = [];
    const write = (...parts: unknown[]): void => void lines.push(parts.join(' '));
    Logger.overrideLogger({ log: write, warn: write, error: write, debug: write, verbose: write });
    const elsewhere = (['log', 'info', 'warn', 'error', 'debug'] as const).map((name) => vi.spyOn(console, name).mockReturnValue());
    try {
      const publisher = open(create({ ca: kafka.certificate, password: 'a wrong one' }));
      await expect(publisher.connect()).rejects.toThrow();
      await publisher.publish([recordFor('any')], { timeout });
      await publisher.close();
      expect(lines.join('\n')).toMatch(/KafkaPublisher|PlatformaticPublisher/);
      expect(lines.join('\n')).not.toContain('a wrong one');
      for (const spy of elsewhere) expect(spy).not.toHaveBeenCalled();
    } finally {
      Logger.overrideLogger(true);
      vi.restoreAllMocks();
    }
  });

  it.each(CLIENTS)('takes a wrong password, and a certificate that it does not know, for an outage: %s', async (_, create) => {
    const topic = await onlooker.createTopic();
    for (const [given, code] of [
      [{ ca: kafka.certificate, password: 'wrong' }, 'SASL_AUTHENTICATION_FAILED'],
      [{}, expect.any(String)],
    ] as const) {
      const publisher = open(create(given));
      await expect(publisher.connect()).rejects.toThrow();
      expect(await publisher.publish([recordFor(topic)], { timeout })).toMatchObject([{ status: 'unknown', failure: { code } }]);
    }
    expect(await onlooker.count(topic)).toBe(0);
  });

  describe.each(KAFKA_CLIENTS)('that were idle for too long', ({ client, create }) => {
    it.each([false, true])(`cost no batch its first try: ${client}, idempotent: %s`, async (idempotent) => {
      const topic = await onlooker.createTopic({ partitions: 2 });
      await onlooker.close();
      await expect.poll(sockets, { timeout: 20_000 }).toBe(0);
      const records = (round: number) => Array.from({ length: 4 }, (_record, n) => recordFor(topic, { key: `k${n}`, value: `${round}` }));
      const publisher = open(create({ brokers: [kafka.open], idempotent }));
      for (let round = 0; round < 3; round += 1) {
        expect(summaryOf(await publisher.publish(records(round), { timeout }))).toEqual(['acknowledged']);
        expect(sockets()).toBeGreaterThan(0);
        await expect.poll(sockets, { timeout: 20_000 }).toBe(0);
      }
      onlooker = await new KafkaBroker([kafka.open]).connect();
      expect(await onlooker.count(topic)).toBe(12);
    });
  });
});

/** Connections of this process. */
function sockets(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length;
}
