import { randomBytes } from 'node:crypto';
import { Partitioners } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { partitionOf } from './partitioner';

/** From `UtilsTest.testMurmur2` of Kafka's Java client. */
const javaVectors: [string, number][] = [
  ['21', -973932308],
  ['foobar', -790332482],
  ['a-little-bit-long-string', -985981536],
  ['a-little-bit-longer-string', -1486304829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
  ['abc', 479470107],
];

const keys = [
  '',
  '0',
  '42',
  'order-1',
  '注文',
  '🦊🦊',
  'ключ',
  'x'.repeat(5000),
  ' padded ',
  ...Array.from({ length: 2000 }, (_, n) => randomBytes(n % 41).toString(n % 2 ? 'hex' : 'latin1')),
];

describe('partitionOf', () => {
  it.each(javaVectors)('hashes %j as the Java client does', (key, hash) => {
    expect(partitionOf(key, 0x7fffffff)).toBe((hash & 0x7fffffff) % 0x7fffffff);
  });

  it.each([1, 2, 3, 6, 12, 100])('agrees with the default partitioner of kafkajs on %i partitions', (count) => {
    const kafkajs = Partitioners.DefaultPartitioner();
    const partitionMetadata = Array.from({ length: count }, (_, partitionId) => ({
      partitionErrorCode: 0,
      partitionId,
      leader: 1,
      replicas: [1],
      isr: [1],
    }));
    for (const key of keys) {
      const theirs = kafkajs({ topic: 't', partitionMetadata, message: { key, value: null } });
      expect(partitionOf(key, count), key).toBe(theirs);
    }
  });

  it('takes bytes and text of the same key alike', () => {
    for (const key of keys) expect(partitionOf(Buffer.from(key), 12)).toBe(partitionOf(key, 12));
  });
});
