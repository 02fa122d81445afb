import assert from 'node:assert/strict';
import { assertStatuses, caseOf, numbered, recordFor } from './bench';
import type { AcceptanceCase, PublisherSetup } from './setup';

const TOO_LARGE = 'x'.repeat(30_000);

/** What cannot be published is refused by itself, and the rest goes its way. */
export function refusalCases(setup: PublisherSetup): AcceptanceCase[] {
  const narrow = async () => (await setup.createNarrowTopic?.({ partitions: 3 })) ?? '';
  return [
    caseOf(
      setup,
      'refuses a record that is too large, alone, and holds back only what follows it in its key',
      async (bench) => {
        const topic = bench.keep(await narrow());
        const other = await bench.topic();
        const records = numbered(topic, 100, 7).map((record, n) => (n % 10 === 9 ? { ...record, topic: other } : record));
        records[20] = recordFor(topic, { key: 'k6', value: TOO_LARGE });
        const outcomes = await bench.publish(records);
        assertStatuses(
          outcomes,
          records.map((record, n) => {
            if (n === 20) return 'refused';
            return record.topic === topic && record.key === 'k6' && n > 20 ? 'unknown' : 'acknowledged';
          }),
        );
        // By this the relay tells them from records that an outage kept back.
        for (const outcome of outcomes) if (outcome.status === 'unknown') assert.match(outcome.failure.code, /^BEHIND_/);
        await bench.assertAsAcknowledged([topic, other], records, outcomes);
      },
      ['createNarrowTopic'],
    ),

    caseOf(
      setup,
      'finds several poisons in one batch, and stores nothing twice',
      async (bench) => {
        const topic = bench.keep(await narrow());
        const poison = new Set([0, 1, 57, 58, 199]);
        const records = numbered(topic, 200, 200).map((record, n) => (poison.has(n) ? { ...record, value: TOO_LARGE } : record));
        const outcomes = await bench.publish(records);
        assertStatuses(outcomes, records.map((_, n) => (poison.has(n) ? 'refused' : 'acknowledged')));
        await bench.assertAsAcknowledged([topic], records, outcomes);
      },
      ['createNarrowTopic'],
    ),

    caseOf(
      setup,
      'refuses a name that no topic can have',
      async (bench) => {
        const topic = await bench.topic();
        const impossible = setup.impossibleTopic ?? '';
        const outcomes = await bench.publish([recordFor(impossible), recordFor(topic), recordFor(impossible)]);
        assertStatuses([outcomes[0], outcomes[1]].flatMap((outcome) => outcome ?? []), ['refused', 'acknowledged']);
        // Of the same key as the first: refused as well, or held back.
        assert.notEqual(outcomes[2]?.status, 'acknowledged');
      },
      ['impossibleTopic'],
    ),

    caseOf(
      setup,
      'does not let a missing topic hold back the others, and makes none',
      async (bench) => {
        const [a, b] = [await bench.topic(), await bench.topic()];
        const missing = setup.missingTopic?.() ?? '';
        const records = [recordFor(a), recordFor(missing), recordFor(b), recordFor(a, { key: 'z' })];
        const publisher = bench.create();
        for (let round = 0; round < 3; round += 1) {
          const outcomes = await bench.publish(records, publisher);
          assertStatuses(outcomes, ['acknowledged', 'unknown', 'acknowledged', 'acknowledged']);
          const [, held] = outcomes;
          // The relay knows this code: it sets the topic's messages aside until it exists, and goes on with the rest.
          assert.equal(held?.status === 'unknown' && held.failure.code, 'UNKNOWN_TOPIC_OR_PARTITION');
        }
        assert.equal((await setup.read(a)).length, 6);
        assert.equal((await setup.read(b)).length, 3);
      },
      ['missingTopic'],
    ),
  ];
}
