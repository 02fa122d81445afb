import { describe, expect, it } from 'vitest';
import { publishBisecting, type TryOutcome, type TrySend } from './bisect';
import { acknowledged, refused, unknown } from './outcome';
import { partitionOf } from './partitioner';
import type { PublishOutcome, PublishRecord } from './publisher';

function record(n: number, key: string | null, topic = 'orders'): PublishRecord {
  return { messageId: `m${n}`, topic, key, value: String(n), headers: {}, timestamp: 0 };
}

/** A generator of numbers that says the same for the same seed. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Takes batches as Kafka does: what goes to one partition is stored as a whole or not at all. */
class Broker {
  readonly stored: PublishRecord[] = [];
  sends = 0;

  constructor(
    private readonly poison: ReadonlySet<string>,
    private readonly lose: () => 'nothing' | 'answer' | 'request' = () => 'nothing',
  ) {}

  readonly send: TrySend = async (records) => {
    this.sends += 1;
    const units = new Map<string, PublishRecord[]>();
    const unitOf = (r: PublishRecord) => `${r.topic}/${r.key === null ? 0 : partitionOf(r.key, 3)}`;
    for (const r of records) units.set(unitOf(r), [...(units.get(unitOf(r)) ?? []), r]);
    const verdicts = new Map<string, (r: PublishRecord) => TryOutcome>();
    for (const [unit, members] of units) {
      if (members.some(({ messageId }) => this.poison.has(messageId))) {
        const failure = { code: 'MESSAGE_TOO_LARGE', message: 'too large' };
        verdicts.set(unit, () => ({ status: 'refused-together', unit, failure }));
        continue;
      }
      const lost = this.lose();
      if (lost !== 'request') this.stored.push(...members);
      verdicts.set(unit, () => (lost === 'nothing' ? acknowledged(0, null) : unknown('TIMEOUT', 'no answer')));
    }
    return records.map((r) => verdicts.get(unitOf(r))?.(r) ?? unknown('?', '?'));
  };
}

/** The rules of `Publisher`, against what the broker has. */
function check(records: readonly PublishRecord[], outcomes: readonly PublishOutcome[], broker: Broker, poison: Set<string>) {
  const times = new Map<string, number>();
  for (const { messageId } of broker.stored) times.set(messageId, (times.get(messageId) ?? 0) + 1);
  const failed = new Set<string>();
  const missing = new Set<string>();
  expect(outcomes).toHaveLength(records.length);
  records.forEach(({ messageId, topic, key }, n) => {
    const { status } = outcomes[n] ?? unknown('?', '?');
    const count = times.get(messageId) ?? 0;
    expect(count, `${messageId} is stored once at most`).toBeLessThanOrEqual(1);
    if (status === 'acknowledged') expect(count, `${messageId} was acknowledged`).toBe(1);
    if (status === 'refused') expect(poison.has(messageId), `${messageId} was refused`).toBe(true);
    if (key === null) return;
    const order = `${topic} ${key}`;
    if (missing.has(order)) expect(count, `${messageId} is stored, an earlier record of its key is not`).toBe(0);
    if (failed.has(order)) expect(status, `${messageId} comes after a failed record of its key`).toBe('unknown');
    if (count === 0) missing.add(order);
    if (status !== 'acknowledged') failed.add(order);
  });
  const seen = new Map<string, number>();
  for (const { topic, key, value } of broker.stored) {
    if (key === null) continue;
    expect(Number(value), 'the order of a key').toBeGreaterThan(seen.get(`${topic} ${key}`) ?? -1);
    seen.set(`${topic} ${key}`, Number(value));
  }
}

const never = () => false;

describe('publishBisecting', () => {
  it('sends once what passes at once', async () => {
    const broker = new Broker(new Set());
    const outcomes = await publishBisecting([record(0, 'a'), record(1, 'b')], broker.send, { expired: never });
    expect(outcomes.map(({ status }) => status)).toEqual(['acknowledged', 'acknowledged']);
    expect(broker.sends).toBe(1);
  });

  it('finds a poison among 1,000 in few sends', async () => {
    const poison = new Set(['m617']);
    const broker = new Broker(poison);
    const records = Array.from({ length: 1_000 }, (_, n) => record(n, `k${n}`));
    const outcomes = await publishBisecting(records, broker.send, { expired: never });
    check(records, outcomes, broker, poison);
    expect(outcomes.filter(({ status }) => status === 'acknowledged')).toHaveLength(999);
    expect(outcomes[617]).toMatchObject({ status: 'refused', failure: { code: 'MESSAGE_TOO_LARGE' } });
    expect(broker.sends).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(1_000)) + 1);
  });

  it('holds back what follows a poison in its key, and nothing else', async () => {
    const poison = new Set(['m2']);
    const records = ['a', 'b', 'a', 'a', 'b', null, 'a'].map((key, n) => record(n, key));
    const broker = new Broker(poison);
    const outcomes = await publishBisecting(records, broker.send, { expired: never });
    expect(outcomes.map((o) => (o.status === 'acknowledged' ? o.status : o.failure.code))).toEqual([
      'acknowledged',
      'acknowledged',
      'MESSAGE_TOO_LARGE',
      'BEHIND_REFUSED',
      'acknowledged',
      'acknowledged',
      'BEHIND_REFUSED',
    ]);
  });

  it('refuses of one key only the first, where a whole topic is refused', async () => {
    const outcomes = await publishBisecting(
      [record(0, 'a'), record(1, 'a'), record(2, null), record(3, null)],
      async (records) => records.map(() => refused('TOPIC_AUTHORIZATION_FAILED', 'not yours')),
      { expired: never },
    );
    expect(outcomes.map(({ status }) => status)).toEqual(['refused', 'unknown', 'refused', 'refused']);
  });

  it('does not send in a later chunk what follows an unanswered record', async () => {
    const sent: string[][] = [];
    const outcomes = await publishBisecting(
      [record(0, 'a'), record(1, 'a'), record(2, 'b')],
      async (records) => {
        sent.push(records.map(({ messageId }) => messageId));
        return records.map(({ messageId }) => (messageId === 'm0' ? unknown('TIMEOUT', '') : acknowledged(0, null)));
      },
      { expired: never, chunks: [[0], [1, 2]] },
    );
    expect(sent).toEqual([['m0'], ['m2']]);
    expect(outcomes[1]).toMatchObject({ status: 'unknown', failure: { code: 'BEHIND_UNKNOWN' } });
    expect(outcomes[2]).toMatchObject({ status: 'acknowledged' });
  });

  it('stops when the time is over', async () => {
    const poison = new Set(['m3']);
    const broker = new Broker(poison);
    const records = Array.from({ length: 8 }, (_, n) => record(n, 'a'));
    const outcomes = await publishBisecting(records, broker.send, { expired: () => broker.sends >= 2 });
    check(records, outcomes, broker, poison);
    expect(broker.sends).toBe(2);
    expect(outcomes.some((o) => o.status === 'unknown' && o.failure.code === 'TIMEOUT')).toBe(true);
  });

  it.each(Array.from({ length: 200 }, (_, seed) => seed))('holds to the rules with random poison, seed %i', async (seed) => {
    const next = random(seed + 1);
    const size = 1 + Math.floor(next() * 120);
    const keys = 1 + Math.floor(next() * 20);
    const records = Array.from({ length: size }, (_, n) =>
      record(n, next() < 0.1 ? null : `k${Math.floor(next() * keys)}`, next() < 0.3 ? 'payments' : 'orders'),
    );
    const share = next() * next();
    const poison = new Set(records.filter(() => next() < share).map(({ messageId }) => messageId));
    const losses = next() < 0.5 ? 0 : next() * 0.3;
    const broker = new Broker(poison, () => (next() >= losses ? 'nothing' : next() < 0.5 ? 'answer' : 'request'));
    const cut = Math.floor(next() * size);
    const chunks = cut === 0 ? undefined : [indexes(0, cut), indexes(cut, size)];
    const outcomes = await publishBisecting(records, broker.send, { expired: never, ...(chunks && { chunks }) });
    check(records, outcomes, broker, poison);
    if (losses > 0) return;
    // Without losses nothing but poison, and what is behind it, may fail.
    outcomes.forEach((outcome, n) => {
      if (outcome.status === 'unknown') expect(outcome.failure.code).toBe('BEHIND_REFUSED');
      if (poison.has(`m${n}`)) expect(outcome.status).not.toBe('acknowledged');
    });
  });
});

function indexes(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, n) => from + n);
}
