import { describe, expect, it } from 'vitest';
import { partitionOf } from '../partitioner';
import type { PublishRecord } from '../publisher';
import { InMemoryBroker } from './in-memory-broker';
import type { StoredRecord } from './topic-log';

function record(n: number, changes: Partial<PublishRecord> = {}): PublishRecord {
  return { messageId: `m${n}`, topic: 'orders', key: `k${n}`, value: `${n}`, headers: {}, timestamp: 5, ...changes };
}

/** Publishes, and says in short what became of each record. */
async function publish(broker: InMemoryBroker, ...records: PublishRecord[]): Promise<string[]> {
  const outcomes = await broker.publisher()().publish(records, { timeout: 1_000 });
  return outcomes.map((outcome) => (outcome.status === 'acknowledged' ? outcome.status : outcome.failure.code));
}

/** A consumer that keeps what it gets. */
function collect(broker: InMemoryBroker, groupId = 'group', topics: readonly (string | RegExp)[] = ['orders']) {
  const got: string[] = [];
  const consumer = broker.consume({ groupId, topics, eachMessage: ({ value }) => got.push(String(value)) });
  return { got, close: () => consumer.close() };
}

describe('InMemoryBroker', () => {
  it('makes topics of three partitions and puts keys where Kafka would', () => {
    const broker = new InMemoryBroker();
    for (let n = 0; n < 30; n += 1) broker.produce('orders', { key: `k${n}`, value: `${n}`, headers: { h: 'v' }, timestamp: n });
    const records = broker.records('orders');
    expect(new Set(records.map(({ partition }) => partition))).toEqual(new Set([0, 1, 2]));
    for (const { key, partition } of records) expect(partition).toBe(partitionOf(key ?? '', 3));
    expect(records.find(({ key }) => key === 'k7')).toMatchObject({ value: '7', headers: { h: 'v' }, timestamp: 7 });
    for (const partition of [0, 1, 2]) {
      const offsets = records.filter((at) => at.partition === partition).map(({ offset }) => Number(offset));
      expect(offsets).toEqual(offsets.map((_, n) => n));
    }
  });

  it('shows nothing of a topic that does not exist, and does not create it by looking', () => {
    const broker = new InMemoryBroker();
    expect(broker.records('orders')).toEqual([]);
    broker.createTopic('orders', { partitions: 7 });
    for (let n = 0; n < 14; n += 1) broker.produce('orders', { value: null });
    expect(new Set(broker.records('orders').map(({ partition }) => partition)).size).toBe(7);
  });

  it('gives each group everything, and each record to one member', async () => {
    const broker = new InMemoryBroker();
    const alone = collect(broker, 'alone');
    const pair = [collect(broker, 'pair'), collect(broker, 'pair')] as const;
    const values = Array.from({ length: 60 }, (_, n) => `${n}`);
    values.forEach((value, n) => broker.produce('orders', { key: `k${n}`, value }));
    await broker.idle();
    const sorted = (got: readonly string[]) => [...got].sort((a, b) => Number(a) - Number(b));
    expect(sorted(alone.got)).toEqual(values);
    expect(sorted([...pair[0].got, ...pair[1].got])).toEqual(values);
    expect(pair[0].got).not.toHaveLength(0);
    expect(pair[1].got).not.toHaveLength(0);
  });

  it('goes on where the group was when a consumer comes back', async () => {
    const broker = new InMemoryBroker({ partitions: 1 });
    const first = collect(broker);
    broker.produce('orders', { value: 'a' });
    await broker.idle();
    await first.close();
    broker.produce('orders', { value: 'b' });
    const second = collect(broker);
    await broker.idle();
    expect([first.got, second.got]).toEqual([['a'], ['b']]);
  });

  it('starts a group at the beginning, or at what comes next', async () => {
    const broker = new InMemoryBroker({ partitions: 1 });
    broker.produce('orders', { value: 'old' });
    const got: string[] = [];
    broker.consume({ groupId: 'late', topics: ['orders'], fromBeginning: false, eachMessage: ({ value }) => got.push(String(value)) });
    const all = collect(broker, 'all');
    broker.produce('orders', { value: 'new' });
    await broker.idle();
    expect(got).toEqual(['new']);
    expect(all.got).toEqual(['old', 'new']);
  });

  it('reads topics by expression, also those that come later', async () => {
    const broker = new InMemoryBroker();
    const { got } = collect(broker, 'group', [/^shop\./]);
    broker.produce('shop.orders', { value: 'a' });
    broker.produce('bank.orders', { value: 'b' });
    await broker.idle();
    expect(got).toEqual(['a']);
  });

  it('runs one record of a partition at a time, and partitions side by side', async () => {
    const broker = new InMemoryBroker({ partitions: 3 });
    const running = new Map<number, number>();
    let most = 0;
    let together = 0;
    broker.consume({
      groupId: 'group',
      topics: ['orders'],
      eachMessage: async ({ partition }) => {
        running.set(partition, (running.get(partition) ?? 0) + 1);
        most = Math.max(most, running.get(partition) ?? 0);
        together = Math.max(together, [...running.values()].reduce((sum, n) => sum + n, 0));
        await new Promise((resolve) => setImmediate(resolve));
        running.set(partition, (running.get(partition) ?? 0) - 1);
      },
    });
    for (let n = 0; n < 60; n += 1) broker.produce('orders', { key: `k${n}`, value: `${n}` });
    await broker.idle();
    expect(most).toBe(1);
    expect(together).toBe(3);
  });

  it('delivers a failed record again, before the next one of its partition', async () => {
    const broker = new InMemoryBroker({ partitions: 1, redeliveryDelay: 1 });
    const got: string[] = [];
    const errors: unknown[] = [];
    let failures = 2;
    broker.consume({
      groupId: 'group',
      topics: ['orders'],
      onError: (error) => errors.push(error),
      eachMessage: async ({ value }) => {
        got.push(String(value));
        if (String(value) === 'b' && failures-- > 0) throw new Error('not yet');
      },
    });
    for (const value of ['a', 'b', 'c']) broker.produce('orders', { value });
    await broker.idle();
    expect(got).toEqual(['a', 'b', 'b', 'b', 'c']);
    expect(errors).toHaveLength(2);
  });

  it('lets the running delivery end at close, and starts none after it', async () => {
    const broker = new InMemoryBroker({ partitions: 1 });
    const got: string[] = [];
    let release = (): void => {};
    const consumer = broker.consume({
      groupId: 'group',
      topics: ['orders'],
      eachMessage: async ({ value }) => {
        await new Promise<void>((resolve) => (release = resolve));
        for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        got.push(String(value));
      },
    });
    broker.produce('orders', { value: 'a' });
    broker.produce('orders', { value: 'b' });
    const closed = consumer.close();
    release();
    await closed;
    expect(got).toEqual(['a']);
    await broker.idle();
    expect(got).toEqual(['a']);
    const rest = collect(broker);
    await broker.idle();
    expect(rest.got).toEqual(['b']);
  });

  it('does not wait out a redelivery at close', async () => {
    const broker = new InMemoryBroker({ redeliveryDelay: 2 ** 30 });
    let failed = (): void => {};
    const failing = new Promise<void>((resolve) => (failed = resolve));
    const eachMessage = (): void => {
      throw new Error('never');
    };
    const consumer = broker.consume({ groupId: 'group', topics: ['orders'], eachMessage, onError: () => failed() });
    broker.produce('orders', { value: 'a' });
    await failing;
    await consumer.close();
    await broker.idle();
  });

  it('delivers once more on request, only what was delivered', async () => {
    const broker = new InMemoryBroker({ partitions: 1 });
    const { got } = collect(broker);
    for (const value of ['a', 'b']) broker.produce('orders', { value });
    await broker.idle();
    expect(broker.redeliver('orders', ({ value }) => value === 'a')).toBe(1);
    await broker.idle();
    broker.produce('orders', { value: 'c' });
    expect(broker.redeliver('orders', ({ value }) => value === 'c')).toBe(1);
    await broker.idle();
    expect(got).toEqual(['a', 'b', 'a', 'c']);
  });

  it('hands over what Kafka would: bytes, offsets and times', async () => {
    const broker = new InMemoryBroker({ partitions: 1 });
    const got: StoredRecord[] = [];
    broker.consume({ groupId: 'group', topics: ['orders'], eachMessage: (stored) => got.push(stored) });
    broker.produce('orders', { key: 'ä', value: null, headers: { id: '🦊' }, timestamp: 9 });
    await broker.idle();
    expect(got).toEqual([
      { topic: 'orders', partition: 0, offset: 0, key: Buffer.from('ä'), value: null, headers: { id: Buffer.from('🦊') }, timestamp: 9 },
    ]);
  });
});

describe('faults of the InMemoryBroker', () => {
  it('takes nothing and delivers nothing in an outage', async () => {
    const broker = new InMemoryBroker();
    const { got } = collect(broker);
    broker.fail('outage');
    expect(await publish(broker, record(0))).toEqual(['BROKER_UNREACHABLE']);
    await expect(broker.publisher()().connect()).rejects.toThrow();
    broker.produce('orders', { value: 'kept back' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(got).toEqual([]);
    broker.heal();
    await broker.idle();
    expect(got).toEqual(['kept back']);
    expect(await publish(broker, record(0))).toEqual(['acknowledged']);
  });

  it('refuses messages by id, and what follows in their keys', async () => {
    const broker = new InMemoryBroker();
    broker.refuse('m1');
    const records = [record(0, { key: 'a' }), record(1, { key: 'a' }), record(2, { key: 'a' }), record(3, { key: 'b' })];
    expect(await publish(broker, ...records)).toEqual(['acknowledged', 'FAULT', 'BEHIND_REFUSED', 'acknowledged']);
    broker.heal();
    expect(await publish(broker, record(1))).toEqual(['acknowledged']);
  });

  it('stores and loses the answer', async () => {
    const broker = new InMemoryBroker();
    broker.loseAnswers();
    expect(await publish(broker, record(0), record(1))).toEqual(['ANSWER_LOST', 'ANSWER_LOST']);
    expect(broker.records('orders')).toHaveLength(2);
    expect(await publish(broker, record(0))).toEqual(['acknowledged']);
    expect(broker.records('orders')).toHaveLength(3);
  });

  it('asks a function', async () => {
    const broker = new InMemoryBroker();
    broker.fail(({ value }) => (value === '0' ? 'lost' : undefined));
    broker.fail(({ value }) => (value === '1' ? 'answer-lost' : undefined));
    const outcomes = await publish(broker, record(0), record(1), record(2));
    expect(outcomes).toEqual(['BROKER_UNREACHABLE', 'ANSWER_LOST', 'acknowledged']);
    expect(broker.records('orders').map(({ value }) => value).sort()).toEqual(['1', '2']);
  });
});
