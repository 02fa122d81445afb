import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PublisherFactory } from '../../libs/outbox/src/publish/publisher';
import { kafkaJava, up } from '../services/index.mjs';
import { KafkaBroker } from './kafka-broker';
import { KAFKA_CLIENTS } from './kafka-clients';
import { recordFor } from './publisher-acceptance';

const run = promisify(execFile);
/** Who has Kafka from elsewhere may lack Java; where it all has to pass, it has to be there. */
const java = await kafkaJava().catch((error: unknown) => {
  if (process.env.CI) throw error;
  return null;
});

/** Bytes that look like nothing, the same in each run. */
const noise = (n: number): Buffer => createHash('sha512').update(`${n}`).digest();

const KINDS: ((n: number) => string)[] = [
  (n) => `${n}`,
  (n) => `order-${n}`,
  (n) => `注文-${n}-キー-열쇠`,
  (n) => `🦊${'👩‍👩‍👧'.repeat(n % 4)}${n}`,
  (n) => `${n}`.padEnd(1 + (n % 4_000), 'long '),
  (n) => noise(n).toString('latin1').slice(0, n % 65),
  (n) => ` ${n}\u0000\r\n\t`,
  (n) => noise(n).toString('hex').slice(0, n % 9),
];
const KEYS = ['', ...Array.from({ length: 9_999 }, (_, n) => (KINDS[n % KINDS.length] ?? String)(n))];

// G9: a client is changed, or another service writes to the topic too.
describe.skipIf(java === null).each([7, 12, 100])('10,000 keys on %i partitions', (partitions) => {
  let onlooker: KafkaBroker;
  let expected: number[];

  async function chosenBy(factory: PublisherFactory, topic: string): Promise<number[]> {
    const publisher = factory();
    const outcomes = await publisher.publish(KEYS.map((key) => recordFor(topic, { key, value: null })), { timeout: 50_000 });
    await publisher.close();
    return outcomes.map((outcome) => (outcome.status === 'acknowledged' ? outcome.partition : -1));
  }

  beforeAll(async () => {
    const { kafka } = await up(['kafka']);
    onlooker = await new KafkaBroker(kafka.brokers ?? []).connect();
    expected = await chosenByJava(await onlooker.createTopic({ partitions }));
    expect(expected).toHaveLength(10_000);
    expect(new Set(expected).size).toBe(partitions);
  });
  afterAll(() => onlooker?.close());

  /** Through Kafka's own producer. */
  async function chosenByJava(topic: string): Promise<number[]> {
    const folder = await mkdtemp(join(tmpdir(), 'keys-'));
    try {
      const keys = join(folder, 'keys');
      await writeFile(keys, KEYS.map((key) => `${Buffer.from(key).toString('base64')}\n`).join(''));
      const source = fileURLToPath(new URL('keys/JavaPartitions.java', import.meta.url));
      const { stdout } = await run(java?.command ?? 'java', [...(java?.args ?? []), source, onlooker.brokers.join(), topic, keys]);
      return stdout.split('\n').filter((line) => /^\d+$/.test(line)).map(Number);
    } finally {
      await rm(folder, { recursive: true });
      await onlooker.deleteTopic(topic);
    }
  }

  it.each(KAFKA_CLIENTS)('$client puts each where Java puts it', async ({ create }) => {
    const topic = await onlooker.createTopic({ partitions });
    expect(await chosenBy(create({ brokers: onlooker.brokers }), topic)).toEqual(expected);
    await onlooker.deleteTopic(topic);
  });

  it('the broker in memory puts each where Java puts it', async () => {
    const broker = new InMemoryBroker();
    broker.createTopic('keys', { partitions });
    expect(await chosenBy(broker.publisher(), 'keys')).toEqual(expected);
  });
});
