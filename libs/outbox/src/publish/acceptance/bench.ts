import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Publisher, PublisherCapabilities, PublishOutcome, PublishRecord } from '../publisher';
import type { AcceptanceCase, PublisherSetup } from './setup';

/** Milliseconds that a sound broker may take. */
export const PATIENCE = 20_000;

/** What one case makes, and clears away at its end. */
export class Bench {
  private readonly publishers: Publisher[] = [];
  private readonly topics: string[] = [];

  constructor(readonly setup: PublisherSetup) {}

  create(): Publisher {
    const publisher = this.setup.create();
    this.publishers.push(publisher);
    return publisher;
  }

  async topic(partitions = 3): Promise<string> {
    return this.keep(await this.setup.createTopic({ partitions }));
  }

  keep(topic: string): string {
    this.topics.push(topic);
    return topic;
  }

  publish(records: readonly PublishRecord[], publisher = this.create()): Promise<readonly PublishOutcome[]> {
    return publisher.publish(records, { timeout: PATIENCE });
  }

  /** Rule 1 and rule 3: on the topics is what was acknowledged, once, and each key in its order. */
  async assertAsAcknowledged(
    topics: readonly string[],
    records: readonly PublishRecord[],
    outcomes: readonly PublishOutcome[],
  ): Promise<void> {
    for (const topic of topics) {
      const meant = records.filter((record, n) => record.topic === topic && outcomes[n]?.status === 'acknowledged');
      assert.deepEqual(valuesByKey(await this.setup.read(topic)), valuesByKey(meant));
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.publishers.map((publisher) => publisher.close()));
    for (const topic of this.topics) await this.setup.removeTopic?.(topic);
  }
}

/** Makes a case of a name and a body, or one that is skipped where its body lacks something. */
export function caseOf(
  setup: PublisherSetup,
  name: string,
  body: (bench: Bench) => Promise<void>,
  needs: readonly (keyof PublisherSetup | keyof PublisherCapabilities)[] = [],
): AcceptanceCase {
  const { capabilities } = setup.create;
  const missing = needs.filter((need) =>
    need === 'order' || need === 'tombstones' ? capabilities?.[need] === false : setup[need] === undefined,
  );
  const skipped = missing.length === 0 ? null : `there is no ${missing.join(', ')}`;
  return {
    name,
    skipped,
    run: async () => {
      if (skipped !== null) throw new Error(`This case is to be skipped: ${skipped}.`);
      const bench = new Bench(setup);
      try {
        await body(bench);
      } finally {
        await bench.close();
      }
    },
  };
}

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

/** So many records with the values 0, 1, …, on so many keys. */
export function numbered(topic: string, count: number, keys: number): PublishRecord[] {
  return Array.from({ length: count }, (_, n) => recordFor(topic, { key: `k${n % keys}`, value: `${n}` }));
}

export function assertStatuses(outcomes: readonly PublishOutcome[], expected: readonly PublishOutcome['status'][]): void {
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    expected,
    summaryOf(outcomes).join(', '),
  );
}

export function assertAll(outcomes: readonly PublishOutcome[], status: PublishOutcome['status'], count: number): void {
  assertStatuses(outcomes, Array.from({ length: count }, () => status));
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
    const outcomes = await publisher.publish(left, { timeout: PATIENCE });
    left = left.filter((_, n) => outcomes[n]?.status !== 'acknowledged');
    if (left.length > 0) await sleep(100);
  }
  return sends;
}

/** The different outcomes there are, in words. */
export function summaryOf(outcomes: readonly PublishOutcome[]): string[] {
  const word = (outcome: PublishOutcome) =>
    outcome.status === 'acknowledged' ? outcome.status : `${outcome.status} ${outcome.failure.code}`;
  return [...new Set(outcomes.map(word))].sort();
}

export function valuesByKey(records: readonly { key: string | null; value: string | null }[]): Map<string | null, (string | null)[]> {
  const byKey = new Map<string | null, (string | null)[]>();
  for (const { key, value } of records) byKey.set(key, [...(byKey.get(key) ?? []), value]);
  return byKey;
}
