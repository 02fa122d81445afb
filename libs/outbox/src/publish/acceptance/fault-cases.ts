import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertAll, caseOf, numbered, recordFor, untilAcknowledged, valuesByKey } from './bench';
import type { AcceptanceCase, Fault, PublisherSetup } from './setup';

/** How much longer than its timeout a publish may take: the relay gives it up for hung after one second. */
const GRACE = 1_000;
/** How long the relay waits for a publisher to close. */
const CLOSE_TIMEOUT = 5_000;
/** In which a late copy would arrive. */
const AFTERMATH = 3_000;

/** The broker is in trouble. */
export function faultCases(setup: PublisherSetup): AcceptanceCase[] {
  return [
    caseOf(
      setup,
      'reports unknown while the broker is away, and goes on without a restart when it is back',
      async (bench) => {
        const topic = await bench.topic();
        const publisher = bench.create();
        const records = numbered(topic, 20, 20);
        assertAll(await bench.publish(records, publisher), 'acknowledged', 20);
        const late = bench.create();
        await during(setup.outage, async () => {
          for (let round = 0; round < 2; round += 1) {
            assertAll(await publisher.publish(records, { timeout: 3_000 }), 'unknown', 20);
          }
          await assert.rejects(late.connect());
        });
        await untilAcknowledged(publisher, records);
        await untilAcknowledged(late, records);
        const values = (await setup.read(topic)).map(({ value }) => value);
        assert.ok(values.length >= 60, `${values.length} records of 60 are there`);
        assert.equal(new Set(values).size, 20);
      },
      ['outage'],
    ),

    caseOf(
      setup,
      'keeps its deadline while the broker is silent, and leaves no copy that was not sent',
      async (bench) => {
        const topic = await bench.topic(1);
        const publisher = bench.create();
        await untilAcknowledged(publisher, [recordFor(topic, { key: 'before' })]);
        const records = numbered(topic, 100, 10);
        const tries = 3;
        await during(setup.silence, async () => {
          for (let round = 0; round < tries; round += 1) {
            const outcomes = await within(1_000 + GRACE, publisher.publish(records, { timeout: 1_000 }));
            assertAll(outcomes, 'unknown', 100);
          }
        });
        const sends = await untilAcknowledged(publisher, records);
        await sleep(AFTERMATH);
        const stored = await setup.read(topic);
        for (const { messageId } of records) {
          const copies = stored.filter(({ headers }) => headers.some(([name, value]) => name === 'id' && value === messageId)).length;
          // What the broker's host had taken already cannot be called back: one copy of each try, and no more.
          assert.ok(copies >= 1 && copies <= tries + sends, `${copies} copies of a record that was sent ${tries + sends} times`);
        }
        // Whatever came late, each key first appears in its order.
        const firsts = [...valuesByKey(stored)].filter(([key]) => key !== 'before').map(([key, values]) => [key, [...new Set(values)]] as const);
        assert.deepEqual(new Map(firsts), valuesByKey(records));
      },
      ['silence'],
    ),

    caseOf(
      setup,
      'ends in time when it is closed while the broker is silent',
      async (bench) => {
        const topic = await bench.topic();
        const publisher = bench.create();
        await untilAcknowledged(publisher, [recordFor(topic)]);
        await during(setup.silence, async () => {
          const running = publisher.publish(numbered(topic, 10, 10), { timeout: 600_000 });
          await sleep(200);
          await within(CLOSE_TIMEOUT, publisher.close());
          assertAll(await within(GRACE, running), 'unknown', 10);
        });
      },
      ['silence'],
    ),
  ];
}

async function during(fault: Fault | undefined, work: () => Promise<void>): Promise<void> {
  await fault?.start();
  try {
    await work();
  } finally {
    await fault?.end();
  }
}

/** Rejects when the promise takes longer than the relay would wait. */
async function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  const hung = new AbortController();
  const late = sleep(milliseconds, null, { signal: hung.signal, ref: false }).then(
    () => Promise.reject(new Error(`it has not returned within ${milliseconds} ms`)),
    () => new Promise<never>(() => {}),
  );
  try {
    return await Promise.race([promise, late]);
  } finally {
    hung.abort();
  }
}
