import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { partitionOf } from '../../libs/outbox/src/publish/partitioner';
import type { Publisher, PublishOutcome, PublishRecord } from '../../libs/outbox/src/publish/publisher';
import { FakeKafka } from './fake-kafka';
import { KAFKA_CLIENTS } from './kafka-clients';
import { recordFor } from './publisher-acceptance';

const MESSAGE_TOO_LARGE = 10;
const NOT_LEADER = 6;
const TOPIC_AUTHORIZATION_FAILED = 29;

/** A key for this partition of this many. */
function keyFor(partition: number, count: number): string {
  for (let n = 0; ; n += 1) if (partitionOf(`k${n}`, count) === partition) return `k${n}`;
}

/** Many records with a value of this length, with the keys of these. */
function kafkaSized(records: readonly PublishRecord[], length: number, count: number): PublishRecord[] {
  const value = 'x'.repeat(length);
  return Array.from({ length: count }, (_, n) => recordFor('orders', { key: records[n % records.length]?.key ?? null, value }));
}

function words(outcomes: readonly PublishOutcome[]): string[] {
  return outcomes.map((o) => (o.status === 'acknowledged' ? `${o.partition}@${o.offset}` : `${o.status} ${o.failure.code}`));
}

const CASES = KAFKA_CLIENTS.flatMap(({ client, create }) => [false, true].map((idempotent) => ({ client, create, idempotent })));

describe.each(CASES)('the $client publisher on the wire, idempotent: $idempotent', ({ client, create, idempotent }) => {
  let kafka: FakeKafka;
  let publisher: Publisher;
  const publish = (records: readonly PublishRecord[], timeout = 15_000) => publisher.publish(records, { timeout });

  beforeEach(async () => {
    kafka = await FakeKafka.start(2);
    // Two partitions, each led by another broker.
    kafka.topics.set('orders', [0, 1]);
    kafka.topics.set('payments', [0, 1]);
    const [first = ''] = kafka.brokers;
    publisher = create({ brokers: [first], idempotent, maxRequestBytes: 100_000_000 })();
  });
  afterEach(async () => {
    await publisher.close();
    await kafka.close();
  });

  const both = (topic = 'orders') => [0, 1].map((partition) => recordFor(topic, { key: keyFor(partition, 2) }));

  it('derives each offset from the place in the partition', async () => {
    const [a, b] = both() as [PublishRecord, PublishRecord];
    expect(words(await publish([a, b, b, a, b]))).toEqual(['0@0', '1@0', '1@1', '0@1', '1@2']);
    expect(words(await publish([b]))).toEqual(['1@1000']);
  });

  it('does not believe a success that does not name a partition', async () => {
    kafka.onProduce = ({ node, units }) => (node === 0 ? {} : Object.fromEntries(units.map((unit) => [unit, 0])));
    expect(words(await publish(both()))).toEqual(['unknown NOT_NAMED', '1@0']);
  });

  it('keeps what one broker stored when another refuses, and answers later', async () => {
    kafka.onProduce = async ({ node, units }) => {
      if (node === 1) await sleep(300);
      return Object.fromEntries(units.map((unit) => [unit, node === 0 ? MESSAGE_TOO_LARGE : 0]));
    };
    expect(words(await publish(both()))).toEqual(['refused MESSAGE_TOO_LARGE', '1@0']);
    expect(kafka.produced).toHaveLength(2);
  });

  it('keeps what was stored beside a refusal in one answer, and sends it no second time', async () => {
    kafka.topics.set('orders', [0, 0]);
    kafka.onProduce = ({ units }) =>
      Object.fromEntries(units.map((unit) => [unit, unit === 'orders/1' ? MESSAGE_TOO_LARGE : 0]));
    const [a, b] = both() as [PublishRecord, PublishRecord];
    expect(words(await publish([a, b, a]))).toEqual(['0@0', 'refused MESSAGE_TOO_LARGE', '0@1']);
    expect(kafka.produced.flatMap(({ units }) => units).filter((unit) => unit === 'orders/0')).toHaveLength(1);
  });

  it('refuses a whole topic without halving it', async () => {
    kafka.onProduce = ({ units }) =>
      Object.fromEntries(units.map((unit) => [unit, unit.startsWith('orders') ? TOPIC_AUTHORIZATION_FAILED : 0]));
    const outcomes = await publish([...both('orders'), ...both('payments')]);
    expect(words(outcomes)).toEqual([
      'refused TOPIC_AUTHORIZATION_FAILED',
      'refused TOPIC_AUTHORIZATION_FAILED',
      '0@0',
      '1@0',
    ]);
  });

  it('returns in time when a broker is silent, with what the others said', async () => {
    kafka.onProduce = ({ node, units }) => (node === 1 ? 'silence' : Object.fromEntries(units.map((unit) => [unit, 0])));
    expect(words(await publish(both(), 1_000))).toEqual(['0@0', 'unknown TIMEOUT']);
  });

  it('waits for the broker that is silent after another one refused', async () => {
    kafka.onProduce = ({ node, units }) =>
      node === 1 ? 'silence' : Object.fromEntries(units.map((unit) => [unit, MESSAGE_TOO_LARGE]));
    const outcomes = words(await publish(both(), 1_000));
    expect(outcomes[0]).toBe('refused MESSAGE_TOO_LARGE');
    expect(outcomes[1]).toMatch(/^unknown /);
  });

  it('sends nothing more once it has returned', async () => {
    kafka.onProduce = () => 'silence';
    const outcomes = words(await publish(both(), 1_000));
    expect(outcomes).toEqual(['unknown TIMEOUT', 'unknown TIMEOUT']);
    const before = { produced: kafka.produced.length, connections: kafka.connections };
    await sleep(3_000);
    expect({ produced: kafka.produced.length, connections: kafka.connections }).toEqual(before);
  });

  it('takes back what a frozen broker has not read yet', async () => {
    await publish(both());
    const produced = kafka.produced.length;
    kafka.freeze();
    const large = kafkaSized(both(), 400_000, 40);
    expect(new Set(words(await publish(large, 1_000)))).toEqual(new Set(['unknown TIMEOUT']));
    kafka.thaw();
    await sleep(2_000);
    expect(kafka.produced).toHaveLength(produced);
  });

  it('leaves no connection behind', async () => {
    await publish(both());
    kafka.onProduce = () => 'silence';
    await publish(both(), 500);
    await publisher.close();
    await expect.poll(() => kafka.openConnections, { timeout: 10_000 }).toBe(0);
  });

  it('keeps nothing that would keep the process alive', async () => {
    const held = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout' || kind === 'TCPSocketWrap').length;
    const before = held();
    await publish(both());
    kafka.onProduce = () => 'silence';
    await publish(both(), 500);
    await publisher.connect();
    await publisher.close();
    await expect.poll(held, { timeout: 10_000 }).toBeLessThanOrEqual(before);
  });

  it('makes a new idempotent producer after a failed send', async ({ skip }) => {
    if (!idempotent) skip('it has no sequence numbers to lose');
    await publish(both());
    await publish(both());
    expect(kafka.producers).toBe(1);
    kafka.onProduce = ({ units }) =>
      Object.fromEntries(units.map((unit) => [unit, unit === 'orders/1' ? MESSAGE_TOO_LARGE : 0]));
    await publish(both());
    kafka.onProduce = ({ units }) => Object.fromEntries(units.map((unit) => [unit, 0]));
    await publish(both());
    expect(kafka.producers).toBe(2);
  });

  it('sends nothing more once it is closed', async () => {
    kafka.onProduce = () => 'silence';
    const running = publish(both(), 30_000);
    while (kafka.produced.length < 2) await sleep(10);
    await publisher.close();
    expect(words(await running)).toEqual(['unknown TIMEOUT', 'unknown TIMEOUT']);
    const before = { produced: kafka.produced.length, connections: kafka.connections };
    await sleep(2_000);
    expect({ produced: kafka.produced.length, connections: kafka.connections }).toEqual(before);
  });

  it('says unknown when the connection breaks after the batch was sent, and then goes on', async () => {
    kafka.onProduce = () => 'close';
    expect((await publish(both())).map(({ status }) => status)).toEqual(['unknown', 'unknown']);
    kafka.onProduce = ({ units }) => Object.fromEntries(units.map((unit) => [unit, 0]));
    expect(words(await publish(both()))).toEqual(['0@0', '1@0']);
  });

  it('leaves the retrying to the relay', async ({ skip }) => {
    if (idempotent && client === 'kafkajs') skip('its idempotent producer insists on retries, and recognises them');
    kafka.onProduce = ({ units }) => Object.fromEntries(units.map((unit) => [unit, NOT_LEADER]));
    expect(words(await publish(both()))).toEqual(['unknown NOT_LEADER_OR_FOLLOWER', 'unknown NOT_LEADER_OR_FOLLOWER']);
    expect(kafka.produced).toHaveLength(2);
  });

  it('is not held back by a broker that cannot be reached', async () => {
    expect(words(await publish(both()))).toEqual(['0@0', '1@0']);
    await kafka.stopNode(1);
    const records = [...both('orders'), ...both('payments')];
    const outcomes = await publish(records);
    expect(outcomes.map(({ status }) => status)).toEqual(['acknowledged', 'unknown', 'acknowledged', 'unknown']);
  });

  it('is not held back by a topic without leaders, nor by one that is missing', async () => {
    kafka.topics.set('payments', [-1, -1]);
    const records = [...both('payments'), ...both('orders'), recordFor('missing')];
    for (let round = 0; round < 2; round += 1) {
      const outcomes = await publish(records);
      expect(outcomes.map(({ status }) => status)).toEqual(['unknown', 'unknown', 'acknowledged', 'acknowledged', 'unknown']);
    }
    kafka.topics.set('payments', [0, 1]);
    expect((await publish(records)).filter(({ status }) => status === 'acknowledged')).toHaveLength(4);
  });

  it('forgets a topic that was deleted', async () => {
    await publish([...both('payments'), ...both('orders')]);
    kafka.topics.delete('payments');
    kafka.onProduce = ({ units }) => Object.fromEntries(units.map((unit) => [unit, unit.startsWith('payments') ? 3 : 0]));
    const statuses = async (records: PublishRecord[]) => (await publish(records)).map(({ status }) => status);
    expect(await statuses([...both('payments'), ...both('orders')])).toEqual(['unknown', 'unknown', 'acknowledged', 'acknowledged']);
    expect(await statuses(both('orders'))).toEqual(['acknowledged', 'acknowledged']);
  });
});
