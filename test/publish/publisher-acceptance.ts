import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PublishOutcome, Publisher, PublishRecord } from '../../libs/outbox/src/publish/publisher';

/** A record as a client that knows nothing of the publisher reads it. */
export interface ReadRecord {
  readonly partition: number;
  readonly offset: string;
  readonly key: string | null;
  readonly value: string | null;
  /** In the order of the wire. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly timestamp: number;
}

export interface TopicOptions {
  readonly partitions?: number;
  readonly maxRecordBytes?: number;
}

/** A broker, and the publisher that is tried on it. */
export interface PublisherSetup {
  create(): Publisher;
  createTopic(options?: TopicOptions): Promise<string>;
  /** All that is on the topic, partition by partition. */
  read(topic: string): Promise<ReadRecord[]>;
  /** Whether the name of a topic that does not exist gets `unknown`; otherwise topics are made by their first use. */
  readonly topicsMustExist: boolean;
  outage: { start(): Promise<void>; end(): Promise<void> };
  close(): Promise<void>;
}

const TIMEOUT = 20_000;

export function recordFor(topic: string, changes: Partial<PublishRecord> = {}): PublishRecord {
  const messageId = changes.messageId ?? randomUUID();
  return {
    messageId,
    topic,
    key: 'key',
    value: '{}',
    headers: { id: messageId, event_type: 'thing.happened', aggregate_type: 'thing' },
    timestamp: Date.now(),
    ...changes,
  };
}

/** What any publisher has to pass. */
export function describePublisher(name: string, setUp: () => Promise<PublisherSetup>): void {
  describe(name, () => {
    let setup: PublisherSetup;
    const publishers: Publisher[] = [];
    const create = (): Publisher => {
      const publisher = setup.create();
      publishers.push(publisher);
      return publisher;
    };
    const publish = (records: readonly PublishRecord[], publisher = create()): Promise<readonly PublishOutcome[]> =>
      publisher.publish(records, { timeout: TIMEOUT });

    beforeAll(async () => {
      setup = await setUp();
    });
    afterEach(async () => {
      await Promise.all(publishers.splice(0).map((publisher) => publisher.close()));
    });
    afterAll(async () => {
      await setup?.close();
    });

    it('names for each record the place where it is then found', async () => {
      const topic = await setup.createTopic({ partitions: 5 });
      const records = Array.from({ length: 200 }, (_, n) => recordFor(topic, { key: `key-${n % 40}`, value: `${n}` }));
      const outcomes = await publish(records);
      const stored = await setup.read(topic);
      expect(stored).toHaveLength(200);
      records.forEach((record, n) => {
        const outcome = outcomes[n];
        if (outcome?.status !== 'acknowledged') throw new Error(`not acknowledged: ${JSON.stringify(outcome)}`);
        const found = stored.find((at) => at.partition === outcome.partition && at.offset === outcome.offset);
        expect(found).toMatchObject({ key: record.key, value: record.value });
      });
    });

    it('puts on the topic exactly the bytes that it was given', async () => {
      const topic = await setup.createTopic({ partitions: 1 });
      const timestamp = Date.UTC(2024, 1, 29, 12, 30, 15, 123);
      const records = [
        recordFor(topic, { key: '🦊-注文', value: '{"b": 1,  "a": "\\u00e9 é 🦊"}' }),
        recordFor(topic, { key: '', value: '' }),
        recordFor(topic, { key: ' trailing blanks  ', value: null }),
        recordFor(topic, { key: 'large', value: 'ä'.repeat(350_000) }),
        recordFor(topic, { headers: { id: 'x', event_type: 'e', aggregate_type: 'a', empty: '', 'x-emoji': '🦊' } }),
      ].map((record, n) => ({ ...record, timestamp: timestamp + n }));
      expect(summaryOf(await publish(records))).toEqual(['acknowledged']);
      expect(await setup.read(topic)).toEqual(
        records.map((record, n) => ({
          partition: 0,
          offset: String(n),
          key: record.key,
          value: record.value,
          headers: Object.entries(record.headers),
          timestamp: record.timestamp,
        })),
      );
    });

    it('keeps the order of each key in a batch of 1,000', async () => {
      const topic = await setup.createTopic({ partitions: 6 });
      const records = Array.from({ length: 1_000 }, (_, n) => recordFor(topic, { key: `k${n % 37}`, value: `${n}` }));
      expect(summaryOf(await publish(records))).toEqual(['acknowledged']);
      expect(valuesByKey(await setup.read(topic))).toEqual(valuesByKey(records));
    });

    it('takes several topics, and records without a key, in one batch', async () => {
      const topics = [await setup.createTopic(), await setup.createTopic(), await setup.createTopic({ partitions: 1 })];
      const records = Array.from({ length: 90 }, (_, n) =>
        recordFor(topics[n % 3] ?? '', { key: n % 2 === 0 ? null : `k${n}`, value: `${n}` }),
      );
      expect(summaryOf(await publish(records))).toEqual(['acknowledged']);
      for (const [t, topic] of topics.entries()) {
        const values = (await setup.read(topic)).map(({ value }) => Number(value)).sort((a, b) => a - b);
        expect(values).toEqual(Array.from({ length: 30 }, (_, n) => 3 * n + t));
      }
    });

    it('takes nothing, and then something', async () => {
      const publisher = create();
      expect(await publish([], publisher)).toEqual([]);
      expect(await publish([recordFor(await setup.createTopic())], publisher)).toMatchObject([{ status: 'acknowledged' }]);
    });

    it('refuses a record that is too large, alone, and holds back only what follows it in its key', async () => {
      const topic = await setup.createTopic({ partitions: 3, maxRecordBytes: 20_000 });
      const other = await setup.createTopic();
      const records = Array.from({ length: 100 }, (_, n) =>
        recordFor(n % 10 === 9 ? other : topic, { key: `k${n % 7}`, value: `${n}` }),
      );
      records[20] = recordFor(topic, { key: 'k6', value: 'x'.repeat(30_000) });
      const outcomes = await publish(records);
      records.forEach((record, n) => {
        const held = record.topic === topic && record.key === 'k6' && n > 20;
        const expected = n === 20 ? 'refused' : held ? 'unknown' : 'acknowledged';
        expect(outcomes[n], `record ${n}`).toMatchObject({ status: expected });
        if (n === 20) expect(outcomes[n]).toMatchObject({ failure: { code: 'MESSAGE_TOO_LARGE' } });
        if (held) expect(outcomes[n]).toMatchObject({ failure: { code: 'BEHIND_REFUSED' } });
      });
      await expectAsAcknowledged(setup, [topic, other], records, outcomes);
    });

    it('finds several poisons in one batch, and stores nothing twice', async () => {
      const topic = await setup.createTopic({ partitions: 3, maxRecordBytes: 20_000 });
      const poison = new Set([0, 1, 57, 58, 199]);
      const records = Array.from({ length: 200 }, (_, n) =>
        recordFor(topic, { key: `k${n}`, value: poison.has(n) ? 'x'.repeat(30_000) : `${n}` }),
      );
      const outcomes = await publish(records);
      outcomes.forEach((outcome, n) => expect(outcome.status).toBe(poison.has(n) ? 'refused' : 'acknowledged'));
      await expectAsAcknowledged(setup, [topic], records, outcomes);
    });

    it('refuses a name that no topic can have', async () => {
      const topic = await setup.createTopic();
      const outcomes = await publish([recordFor('no topic'), recordFor(topic), recordFor('')]);
      expect(outcomes.map(({ status }) => status)).toEqual(['refused', 'acknowledged', 'refused']);
      expect(outcomes[0]).toMatchObject({ failure: { code: 'INVALID_TOPIC_EXCEPTION' } });
    });

    it('does not let a missing topic hold back the others', async ({ skip }) => {
      if (!setup.topicsMustExist) skip('topics are made by their first use');
      const [a, b] = [await setup.createTopic(), await setup.createTopic()];
      const records = [recordFor(a), recordFor(`missing-${randomUUID()}`), recordFor(b), recordFor(a, { key: 'z' })];
      const publisher = create();
      for (let round = 0; round < 3; round += 1) {
        const outcomes = await publish(records, publisher);
        expect(outcomes.map(({ status }) => status)).toEqual(['acknowledged', 'unknown', 'acknowledged', 'acknowledged']);
        expect(outcomes[1]).toMatchObject({ failure: { code: 'UNKNOWN_TOPIC_OR_PARTITION' } });
      }
      expect(await setup.read(a)).toHaveLength(6);
      expect(await setup.read(b)).toHaveLength(3);
    });

    it('does not publish twice at a time', async () => {
      const topic = await setup.createTopic();
      const publisher = create();
      const first = publish([recordFor(topic)], publisher);
      await expect(publish([recordFor(topic)], publisher)).rejects.toThrow(/running/);
      expect(await first).toMatchObject([{ status: 'acknowledged' }]);
      expect(await setup.read(topic)).toHaveLength(1);
    });

    it('publishes while it connects, and connects twice', async () => {
      const topic = await setup.createTopic();
      const publisher = create();
      const connecting = [publisher.connect(), publisher.connect()];
      expect(summaryOf(await publish([recordFor(topic)], publisher))).toEqual(['acknowledged']);
      await Promise.all(connecting);
      await publisher.connect();
    });

    it('is closed while it connects', async () => {
      const publisher = create();
      const connecting = publisher.connect().catch(() => {});
      await publisher.close();
      await connecting;
      expect(summaryOf(await publish([recordFor(await setup.createTopic())], publisher))).toEqual(['unknown CLOSED']);
    });

    it('is closed during a publish, again, and for good', async () => {
      const topic = await setup.createTopic();
      const publisher = create();
      const records = Array.from({ length: 50 }, (_, n) => recordFor(topic, { key: `k${n}`, value: `${n}` }));
      const running = publish(records, publisher);
      await Promise.all([publisher.close(), publisher.close()]);
      const outcomes = await running;
      await publisher.close();
      expect(await publish([recordFor(topic)], publisher)).toMatchObject([{ status: 'unknown', failure: { code: 'CLOSED' } }]);
      // What was acknowledged is there; what was not may be, once.
      const values = (await setup.read(topic)).map(({ value }) => value);
      expect(new Set(values).size).toBe(values.length);
      outcomes.forEach((outcome, n) => {
        if (outcome.status === 'acknowledged') expect(values).toContain(`${n}`);
      });
    });

    it('reports unknown while the broker is away, and goes on without a restart when it is back', { timeout: 180_000 }, async () => {
      const topic = await setup.createTopic();
      const publisher = create();
      const records = Array.from({ length: 20 }, (_, n) => recordFor(topic, { key: `k${n}`, value: `${n}` }));
      expect(summaryOf(await publish(records, publisher))).toEqual(['acknowledged']);
      await setup.outage.start();
      for (let round = 0; round < 2; round += 1) {
        const outcomes = await publisher.publish(records, { timeout: 3_000 });
        expect(outcomes.map(({ status }) => status)).toEqual(records.map(() => 'unknown'));
      }
      const late = create();
      await expect(late.connect()).rejects.toThrow();
      await setup.outage.end();
      await untilAcknowledged(publisher, records);
      await untilAcknowledged(late, records);
      const values = (await setup.read(topic)).map(({ value }) => value);
      expect(values.length).toBeGreaterThanOrEqual(60);
      expect(new Set(values).size).toBe(20);
    });
  });
}

/**
 * Does what the relay does: sends again what was not acknowledged. A broker that is back may need a moment. Returns how
 * often it had to send: each time but the last may have left a copy.
 */
export async function untilAcknowledged(publisher: Publisher, records: readonly PublishRecord[]): Promise<number> {
  let left = records;
  let sends = 0;
  while (left.length > 0) {
    sends += 1;
    const outcomes = await publisher.publish(left, { timeout: TIMEOUT });
    left = left.filter((_, n) => outcomes[n]?.status !== 'acknowledged');
    if (left.length > 0) await sleep(100);
  }
  return sends;
}

/** Rule 1 and rule 3: on the topics is what was acknowledged, once, and each key in its order. */
async function expectAsAcknowledged(
  setup: PublisherSetup,
  topics: readonly string[],
  records: readonly PublishRecord[],
  outcomes: readonly PublishOutcome[],
): Promise<void> {
  for (const topic of topics) {
    const meant = records.filter((record, n) => record.topic === topic && outcomes[n]?.status === 'acknowledged');
    expect(valuesByKey(await setup.read(topic))).toEqual(valuesByKey(meant));
  }
}

/** The different outcomes there are, in words. */
export function summaryOf(outcomes: readonly PublishOutcome[]): string[] {
  const word = (outcome: PublishOutcome) =>
    outcome.status === 'acknowledged' ? outcome.status : `${outcome.status} ${outcome.failure.code}`;
  return [...new Set(outcomes.map(word))].sort();
}

export function valuesByKey(records: readonly { key: string | null; value: string | null }[]) {
  const byKey = new Map<string | null, (string | null)[]>();
  for (const { key, value } of records) byKey.set(key, [...(byKey.get(key) ?? []), value]);
  return byKey;
}
