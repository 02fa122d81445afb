import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { IdempotentConsumer, Outbox, OutboxAdmin, type PublisherFactory, Relay, TransactionRunner } from 'nestjs-transactional-outbox';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { prometheusMetrics } from 'nestjs-transactional-outbox/prometheus';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { DATABASES } from '../setup/databases';
import { Scrape } from './scrape';

const QUICK = { retryDelay: 10, maxRetryDelay: 50, maxAttempts: 3, pollInterval: 50, publishTimeout: 500, sessionTimeout: 3000 };
const ORDERS = 120;
const BILLS = 6;

/** Fails on what it is told to. */
@Controller()
class Shelf {
  @EventPattern('orders')
  @IdempotentConsumer('shelf', { retry: { attempts: 2, attemptsPerDelivery: 2, backoff: 1 } })
  put(@Payload() value: { n: number }): void {
    if (value.n % 40 === 7) throw new Error('no room');
  }
}

// M2
describe.each(DATABASES)('after faults on %s', (database) => {
  let app: TestApp;
  const registry = new Registry();
  const broker = new InMemoryBroker();
  let beforeAnswer: (topics: readonly string[]) => Promise<void> = async () => undefined;
  const answers = { acknowledged: 0, refused: 0, unknown: 0 };

  /** The broker's publisher, whose answers are counted beside the metrics. */
  const counted: PublisherFactory = () => {
    const publisher = broker.publisher()();
    return {
      connect: () => publisher.connect(),
      close: () => publisher.close(),
      async publish(records, options) {
        const outcomes = await publisher.publish(records, options);
        for (const outcome of outcomes) {
          const behind = outcome.status === 'unknown' && outcome.failure.code.startsWith('BEHIND_');
          if (!behind) answers[outcome.status]++;
        }
        await beforeAnswer(records.map(({ topic }) => topic));
        return outcomes;
      },
    };
  };

  const count = async (from: string): Promise<number> => {
    const [row] = (await app.dataSource.query(`SELECT COUNT(*) AS n FROM ${from}`)) as { n: string | number }[];
    return Number(row?.n);
  };
  const emit = (topic: string, count: number, fill = ''): Promise<void> =>
    app.app.get(TransactionRunner).run(async () => {
      const numbers = Array.from({ length: count }, (_, n) => n);
      app.app.get(Outbox).emitRaw(numbers.map((n) => ({ type: 'made', topic, key: `k${n % 10}`, payload: JSON.stringify({ fill, n }) })));
    });
  const scraped = (): Promise<Scrape> => Scrape.of(registry);
  /** Waits until the tables say so, by a scrape. */
  const becomes = (name: string, value: number, labels?: Record<string, string>): Promise<void> =>
    expect.poll(async () => (await scraped()).sum(name, labels), { timeout: 30_000 }).toBe(value);

  beforeAll(async () => {
    const outbox = { publisher: counted, relay: QUICK, metrics: prometheusMetrics({ registry }), maxMessageBytes: 10_000 };
    app = await startApp(database, { controllers: [Shelf], outbox });
    app.app.connectMicroservice({ strategy: broker.server({ groupId: 'shelf' }) });
    await app.app.startAllMicroservices();
  });
  afterAll(() => app.close());

  it('tell of an outage while it lasts', async () => {
    broker.fail('outage');
    await emit('orders', ORDERS);
    await becomes('outbox_relay_trouble', 1, { stage: 'broker' });
    await becomes('outbox_messages_pending', ORDERS, { topic: 'orders', data_source: 'default' });
    const during = await scraped();
    expect(during.sum('outbox_messages_emitted_total')).toBe(ORDERS);
    expect(during.sum('outbox_messages_published_total')).toBeUndefined();
    expect(during.sum('outbox_relay_failures_total', { stage: 'broker' })).toBeGreaterThan(0);
    expect(during.sum('outbox_oldest_age_seconds')).toBeGreaterThan(0);
    expect(during.sum('outbox_relay_running')).toBe(1);
  });

  it('agree with the tables and the topics when all is over', async () => {
    const refusedOnce = new Set<string>();
    broker.heal();
    broker.loseAnswers(2);
    broker.fail(({ topic, value, messageId }) => {
      if (topic === 'bills') return 'refused';
      if (topic !== 'orders' || !value?.endsWith('5}') || refusedOnce.has(messageId)) return undefined;
      refusedOnce.add(messageId);
      return 'refused';
    });
    await emit('bills', BILLS);
    await emit('letters', 1, 'x'.repeat(6000));
    // What is rolled back was never emitted.
    await expect(app.app.get(TransactionRunner).run(async () => {
      app.app.get(Outbox).emitRaw({ type: 'made', topic: 'orders', payload: '{}' });
      throw new Error('no');
    })).rejects.toThrow('no');
    await becomes('outbox_messages_dead', BILLS, { topic: 'bills' });
    // Three that the consumer gives up. An answer that was lost makes a further copy.
    const deadLetters = () => new Set(broker.records('orders.dlt').map(({ headers }) => headers['id'])).size;
    await expect.poll(deadLetters, { timeout: 30_000 }).toBe(3);
    broker.heal();
    await becomes('outbox_messages_pending', 0);
    await becomes('outbox_messages_held', 0);
    await expect.poll(() => count('outbox_message WHERE status = 0'), { timeout: 30_000 }).toBe(0);
    await broker.idle();

    const after = await scraped();
    for (const topic of ['orders', 'bills', 'letters', 'orders.dlt']) {
      expect(after.sum('outbox_messages_emitted_total', { topic })).toBe(await count(`outbox_message WHERE topic = '${topic}'`));
      const sent = await count(`outbox_message WHERE status = 1 AND topic = '${topic}'`);
      expect(after.sum('outbox_messages_published_total', { topic }) ?? 0).toBe(sent);
      expect(after.sum('outbox_delivery_duration_seconds_count', { topic }) ?? 0).toBe(sent);
    }
    const published = after.sum('outbox_messages_published_total');
    expect(published).toBe(answers.acknowledged);
    expect(published).toBe(app.app.get(Relay).status().published);
    expect(after.sum('outbox_messages_unanswered_total')).toBe(answers.unknown);
    expect(answers.unknown).toBeGreaterThan(0);

    const [tries] = (await app.dataSource.query('SELECT SUM(retry_count) AS n FROM outbox_message')) as { n: string | number }[];
    expect(after.sum('outbox_messages_refused_total')).toBe(Number(tries?.n));
    expect(after.sum('outbox_messages_refused_total')).toBe(answers.refused);
    expect(after.sum('outbox_messages_parked_total')).toBe(await count('outbox_dead'));
    expect(after.sum('outbox_messages_retried_total')).toBe(answers.refused - BILLS);
    expect(after.sum('outbox_messages_large_total')).toBe(1);

    const onTopic = broker.records('orders').length;
    const [handled, given] = [await count('consumed_message WHERE dead = 0'), await count('consumed_message WHERE dead = 1')];
    expect(handled + given).toBe(ORDERS);
    expect(after.sum('outbox_consumer_messages_total', { consumer: 'shelf', outcome: 'handled' })).toBe(handled);
    expect(after.sum('outbox_consumer_messages_total', { outcome: 'dead_lettered' })).toBe(given);
    expect(after.sum('outbox_consumer_messages_total', { outcome: 'duplicate' })).toBe(onTopic - ORDERS);
    expect(onTopic).toBeGreaterThan(ORDERS);
    expect(after.sum('outbox_consumer_failures_total', { consumer: 'shelf' })).toBe(2 * given);
    expect(after.sum('outbox_lanes_lost_total')).toBe(0);
    expect(after.sum('outbox_messages_lost')).toBe(0);
    expect(after.sum('outbox_database_up')).toBe(1);
  });

  it('count a batch as published only when it is settled', async () => {
    const before = await scraped();
    const acknowledged = answers.acknowledged;
    let taken: { lane: number; id: string; bytes: number }[] = [];
    beforeAnswer = async (topics) => {
      if (!topics.includes('parcels')) return;
      beforeAnswer = async () => undefined;
      // As if another relay had been faster.
      taken = (await app.dataSource.query('SELECT lane, id, bytes FROM outbox_pending')) as typeof taken;
      await app.dataSource.query('DELETE FROM outbox_pending');
    };
    await emit('parcels', 3);
    await becomes('outbox_lanes_lost_messages_total', 3);
    expect((await scraped()).sum('outbox_messages_published_total', { topic: 'parcels' })).toBeUndefined();
    expect(taken).toHaveLength(3);
    const rows = taken.map(({ lane, id, bytes }) => `(${lane}, ${id}, ${bytes})`);
    // And one that somebody has deleted from the log.
    await app.dataSource.query(`INSERT INTO outbox_pending (lane, id, bytes) VALUES ${[...rows, '(0, 999999999, 10)'].join(', ')}`);
    await becomes('outbox_messages_published_total', 3, { topic: 'parcels' });
    await becomes('outbox_messages_lost', 1);
    const after = await scraped();
    expect(answers.acknowledged - acknowledged).toBe(6);
    expect((after.sum('outbox_messages_published_total') ?? 0) - (before.sum('outbox_messages_published_total') ?? 0)).toBe(3);
    expect(after.sum('outbox_lanes_lost_total')).toBeGreaterThan(0);
    await expect.poll(() => count('outbox_message WHERE status = 0'), { timeout: 30_000 }).toBe(0);
  });

  it('count what is purged', async () => {
    const before = await count('outbox_message');
    await app.app.get(OutboxAdmin).purge({ by: 'anna', reason: 'test' }, { sent: 0 });
    await becomes('outbox_purged_rows_total', before - (await count('outbox_message')), { kind: 'sent' });
    expect(await count('outbox_message')).toBe(BILLS);
  });

  it.skipIf(database === 'sqlite')('tell the sizes of the tables', async () => {
    const { text } = await scraped();
    expect(text).toMatch(/^outbox_table_size_bytes\{data_source="default",table="outbox_message"\} [1-9]/m);
    // PostgreSQL needs no buckets.
    expect((text.match(/^outbox_table_rows\{/gm) ?? []).length).toBe(database === 'postgres' ? 13 : 14);
  });
});
