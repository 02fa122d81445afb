import assert from 'node:assert/strict';
import { assertAll, caseOf, numbered, recordFor } from './bench';
import type { AcceptanceCase, PublisherSetup } from './setup';

/** From the making of a publisher to its end. */
export function lifecycleCases(setup: PublisherSetup): AcceptanceCase[] {
  return [
    caseOf(setup, 'does not publish twice at a time', async (bench) => {
      const topic = await bench.topic();
      const publisher = bench.create();
      const first = bench.publish([recordFor(topic)], publisher);
      await assert.rejects(bench.publish([recordFor(topic)], publisher));
      assertAll(await first, 'acknowledged', 1);
      assert.equal((await setup.read(topic)).length, 1);
    }),

    caseOf(setup, 'publishes while it connects, and connects twice', async (bench) => {
      const topic = await bench.topic();
      const publisher = bench.create();
      const connecting = [publisher.connect(), publisher.connect()];
      assertAll(await bench.publish([recordFor(topic)], publisher), 'acknowledged', 1);
      await Promise.all(connecting);
      await publisher.connect();
    }),

    caseOf(setup, 'is closed before it was ever used', async (bench) => {
      const publisher = bench.create();
      await publisher.close();
      await publisher.close();
    }),

    caseOf(setup, 'is closed while it connects', async (bench) => {
      const publisher = bench.create();
      const connecting = publisher.connect().catch(() => {});
      await publisher.close();
      await connecting;
      assertAll(await bench.publish([recordFor(await bench.topic())], publisher), 'unknown', 1);
    }),

    caseOf(setup, 'is closed during a publish, again, and for good', async (bench) => {
      const topic = await bench.topic();
      const publisher = bench.create();
      const records = numbered(topic, 50, 50);
      const running = bench.publish(records, publisher);
      await Promise.all([publisher.close(), publisher.close()]);
      const outcomes = await running;
      await publisher.close();
      assertAll(await bench.publish([recordFor(topic)], publisher), 'unknown', 1);
      // What was acknowledged is there; what was not may be, once.
      const values = (await setup.read(topic)).map(({ value }) => value);
      assert.equal(new Set(values).size, values.length);
      outcomes.forEach((outcome, n) => {
        if (outcome.status === 'acknowledged') assert.ok(values.includes(`${n}`), `record ${n} was acknowledged and is not there`);
      });
    }),
  ];
}
