import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { route, type TopicSpec } from 'nestjs-transactional-outbox';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type OwnServer, startOwn } from '../services/index.mjs';
import { startApp } from '../setup/app';
import { Flow } from './flow';
import { KafkaBroker } from './kafka-broker';
import { KAFKA_CLIENTS } from './kafka-clients';

describe.each(KAFKA_CLIENTS)('topics that an app asks for with $client', { timeout: 120_000 }, ({ create }) => {
  let server: OwnServer;
  let onlooker: KafkaBroker;
  const warnings: string[] = [];
  const brokers = (): string[] => server.info.brokers ?? [];
  const publisher = (topics?: readonly TopicSpec[]) => create({ brokers: brokers(), ...(topics && { topics }) });
  const start = (topics?: readonly TopicSpec[]) =>
    startApp('sqlite', { outbox: { publisher: publisher(topics), relay: { enabled: true } } });

  beforeAll(async () => {
    // A broker that would create what is asked for by mistake.
    server = await startOwn('kafka', { settings: { 'auto.create.topics.enable': 'true', 'num.partitions': '4' } });
    onlooker = await new KafkaBroker(brokers()).connect();
  });
  beforeEach(() => {
    warnings.length = 0;
    vi.spyOn(Logger.prototype, 'warn').mockImplementation((line: string) => void (line.startsWith('The topic') && warnings.push(line)));
    vi.spyOn(Logger.prototype, 'error').mockReturnValue();
    vi.spyOn(Logger.prototype, 'log').mockReturnValue();
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });
  afterAll(async () => {
    await onlooker?.close();
    await server?.remove();
  });

  it('are there, as asked for, when the app has started, by however many instances at once', async () => {
    const [one, two] = [`t-${randomUUID()}`, `t-${randomUUID()}`];
    const topics = [{ topic: one, partitions: 7, replicationFactor: 1, config: { 'retention.ms': '3600000' } }, { topic: two }];
    const apps = await Promise.all(Array.from({ length: 4 }, () => start(topics)));
    // On a busy machine the app may have started before: then they are made before the first batch.
    await expect.poll(() => onlooker.leaders(one).catch(() => []), { timeout: 30_000 }).toHaveLength(7);
    await expect.poll(() => onlooker.leaders(two).catch(() => []), { timeout: 30_000 }).toHaveLength(4);
    expect(await onlooker.configOf(one, 'retention.ms')).toBe('3600000');
    expect(warnings).toEqual([]);
    await Promise.all(apps.map((app) => app.close()));
  });

  it('are left as they are when they exist, with a word about partitions that are fewer', async () => {
    const [few, many] = [await onlooker.createTopic({ partitions: 2 }), await onlooker.createTopic({ partitions: 5 })];
    const app = await start([few, many].map((topic) => ({ topic, partitions: 3, config: { 'retention.ms': '1' } })));
    expect(await onlooker.leaders(few)).toHaveLength(2);
    expect(await onlooker.leaders(many)).toHaveLength(5);
    expect(await onlooker.configOf(few, 'retention.ms')).not.toBe('1');
    expect(warnings).toEqual([expect.stringContaining(`The topic ${few} has 2 partitions, not 3`)]);
    await app.close();
  });

  it.each([
    [{ config: { 'retention.ms': 'soon' } }, 'INVALID_CONFIG'],
    [{ replicationFactor: 3 }, 'INVALID_REPLICATION_FACTOR'],
  ])('keep the app from starting when Kafka refuses them: %j', async (spec, reason) => {
    const [good, bad] = [`t-${randomUUID()}`, `t-${randomUUID()}`];
    const started = start([{ topic: bad, ...spec }, { topic: good }]);
    await expect(started).rejects.toMatchObject({ code: 'OUTBOX_TOPIC_REFUSED', message: expect.stringMatching(`${bad}.*${reason}`) });
    expect(await onlooker.names()).toContain(good);
    expect(await onlooker.names()).not.toContain(bad);
    // The same where it is one route of several.
    const routed = route([{ topics: bad, publisher: publisher([{ topic: bad, ...spec }]) }, { publisher: publisher() }]);
    await expect(routed.prepare?.()).rejects.toMatchObject({ code: 'OUTBOX_TOPIC_REFUSED' });
  });

  it('are not created when nobody asks', async () => {
    const before = await onlooker.names();
    const missing = `t-${randomUUID()}`;
    const flow = await Flow.start('sqlite', publisher(), [missing]);
    await flow.round();
    await expect.poll(() => flow.relay.status().missingTopics, { timeout: 60_000 }).toEqual([missing]);
    expect(await onlooker.names()).toEqual(before);
    await flow.close();
  });

  it('are created before the first batch when the broker is away at the start', async () => {
    const topic = `t-${randomUUID()}`;
    await server.kill('SIGKILL');
    const flow = await Flow.start('sqlite', publisher([{ topic, partitions: 3 }]), [topic]);
    await flow.round();
    await expect.poll(() => flow.relay.status().trouble?.stage).toBe('broker');
    await server.restart();
    await flow.drained();
    expect(await onlooker.leaders(topic)).toHaveLength(3);
    expect(await flow.faults(onlooker)).toEqual([]);
    expect(flow.relay.status().missingTopics).toEqual([]);
    await flow.close();
  });

  it('are refused when they are made wrongly', () => {
    const wrong: [unknown, RegExp][] = [
      ['orders', /must be a list/],
      [[null], /list of objects/],
      [[{ topic: 'no topic' }], /"no topic" is not a name/],
      [[{}], /is not a name/],
      [[{ topic: 'a', partitions: 0 }], /partitions.*at least 1/],
      [[{ topic: 'a', replicationFactor: 1.5 }], /replicationFactor/],
      [[{ topic: 'a', config: { 'retention.ms': 7 } }], /retention.ms as text/],
      [[{ topic: 'a', numPartitions: 3 }], /unknown option numPartitions/],
      [[{ topic: 'a' }, { topic: 'a' }], /more than once/],
    ];
    for (const [topics, message] of wrong) expect(() => publisher(topics as TopicSpec[])).toThrow(message);
  });
});
