import assert from 'node:assert/strict';
import { assertAll, caseOf, numbered, recordFor, valuesByKey } from './bench';
import type { AcceptanceCase, PublisherSetup } from './setup';

/** What is on the topic is what was published. */
export function recordCases(setup: PublisherSetup): AcceptanceCase[] {
  return [
    caseOf(setup, 'names for each record the place where it is then found', async (bench) => {
      const topic = await bench.topic(5);
      const records = numbered(topic, 200, 40);
      const outcomes = await bench.publish(records);
      const stored = await setup.read(topic);
      assert.equal(stored.length, 200);
      records.forEach((record, n) => {
        const outcome = outcomes[n];
        assert.equal(outcome?.status, 'acknowledged', JSON.stringify(outcome));
        const found = stored.find((at) =>
          outcome.offset === null
            ? at.headers.some(([name, value]) => name === 'id' && value === record.messageId)
            : at.partition === outcome.partition && at.offset === outcome.offset,
        );
        assert.deepEqual([found?.partition, found?.key, found?.value], [outcome.partition, record.key, record.value]);
      });
    }),

    caseOf(setup, 'puts on the topic exactly the bytes that it was given', async (bench) => {
      const topic = await bench.topic(1);
      const timestamp = Date.UTC(2024, 1, 29, 12, 30, 15, 123);
      const records = [
        recordFor(topic, { key: '🦊-注文', value: '{"b": 1,  "a": "\\u00e9 é 🦊"}' }),
        recordFor(topic, { key: '', value: '' }),
        recordFor(topic, { key: ' trailing blanks  ', value: setup.create.capabilities?.tombstones === false ? ' ' : null }),
        recordFor(topic, { key: 'large', value: 'ä'.repeat(100_000) }),
        recordFor(topic, { headers: { id: 'x', event_type: 'e', aggregate_type: 'a', empty: '', 'x-emoji': '🦊' } }),
      ].map((record, n) => ({ ...record, timestamp: timestamp + n }));
      assertAll(await bench.publish(records), 'acknowledged', records.length);
      const stored = await setup.read(topic);
      assert.deepEqual(
        stored.map(({ key, value, headers, timestamp: at }) => ({ key, value, headers, at })),
        records.map(({ key, value, headers, timestamp: at }) => ({ key, value, headers: Object.entries(headers), at })),
      );
    }),

    caseOf(setup, 'keeps the order of each key in a batch of 1,000', async (bench) => {
      const topic = await bench.topic(6);
      const records = numbered(topic, 1_000, 37);
      assertAll(await bench.publish(records), 'acknowledged', 1_000);
      assert.deepEqual(valuesByKey(await setup.read(topic)), valuesByKey(records));
    }, ['order']),

    caseOf(setup, 'keeps the order of each key over several batches', async (bench) => {
      const topic = await bench.topic();
      const records = numbered(topic, 120, 5);
      const publisher = bench.create();
      for (let from = 0; from < 120; from += 30) {
        assertAll(await bench.publish(records.slice(from, from + 30), publisher), 'acknowledged', 30);
      }
      assert.deepEqual(valuesByKey(await setup.read(topic)), valuesByKey(records));
    }, ['order']),

    caseOf(setup, 'takes several topics, and records without a key, in one batch', async (bench) => {
      const topics = [await bench.topic(), await bench.topic(), await bench.topic(1)];
      const records = Array.from({ length: 90 }, (_, n) =>
        recordFor(topics[n % 3] ?? '', { key: n % 2 === 0 ? null : `k${n}`, value: `${n}` }),
      );
      assertAll(await bench.publish(records), 'acknowledged', 90);
      for (const [t, topic] of topics.entries()) {
        const values = (await setup.read(topic)).map(({ value }) => Number(value)).sort((a, b) => a - b);
        assert.deepEqual(values, Array.from({ length: 30 }, (_, n) => 3 * n + t));
      }
    }),

    caseOf(setup, 'takes nothing, and then something', async (bench) => {
      const publisher = bench.create();
      assert.deepEqual(await bench.publish([], publisher), []);
      assertAll(await bench.publish([recordFor(await bench.topic())], publisher), 'acknowledged', 1);
    }),
  ];
}
