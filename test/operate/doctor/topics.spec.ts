import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KafkaBroker } from '../../publish/kafka-broker';
import { DATABASES } from '../../setup/databases';
import { message, StoreFixture } from '../../store/fixture';
import { examine } from './examine';

const brokers = (process.env['OUTBOX_KAFKA_BROKERS'] ?? '').split(',');
const clientOf = (addresses: string[]): Kafka => new Kafka({ clientId: 'doctor', brokers: addresses, logLevel: logLevel.NOTHING, retry: { retries: 1 } });

describe.each(DATABASES)('the doctor on %s and Kafka', (database) => {
  let f: StoreFixture;
  let broker: KafkaBroker;
  beforeAll(async () => {
    f = await StoreFixture.open(database);
    broker = await new KafkaBroker(brokers).connect();
  });
  afterAll(async () => {
    await broker?.close();
    await f?.close();
  });

  it('finds topics that are not there, that take nothing, and that take too little', async () => {
    const single = await broker.createTopic({ partitions: 2 });
    const strict = await broker.createTopic({ partitions: 1, minInSync: 2 });
    const small = await broker.createTopic({ partitions: 1, maxRecordBytes: 500_000 });
    await f.add(message({ topic: single }), message({ topic: strict }), message({ topic: 'no-such-topic' }));
    const { wrong, seen } = await examine(f.dataSource, { kafka: clientOf(brokers), topics: [small] });
    expect(wrong).toEqual({ 'topics.present': 'fault', 'topics.replicas': 'fault', 'topics.size': 'fault' });
    expect(seen('topics.present')).toBe('there is no topic no-such-topic');
    expect(seen('topics.replicas')).toContain(`${strict} takes nothing: min.insync.replicas=2, and it has 1 replicas`);
    expect(seen('topics.replicas')).toContain(`${single} has one replica`);
    expect(seen('topics.size')).toBe(`${small} takes 500000 bytes, and the outbox takes messages of 1000000`);
    // It has asked for the topic, and not made it.
    expect(await broker.names()).not.toContain('no-such-topic');
    expect((await examine(f.dataSource, { kafka: clientOf(brokers), topics: [small], maxMessageBytes: 400_000 })).wrong['topics.size']).toBeUndefined();
  });

  it('finds brokers that do not answer', async () => {
    const { wrong, healthy } = await examine(f.dataSource, { kafka: clientOf(['127.0.0.1:1']) });
    expect([wrong, healthy]).toEqual([{ 'brokers.reachable': 'fault' }, false]);
  });
});
