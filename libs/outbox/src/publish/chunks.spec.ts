import { describe, expect, it } from 'vitest';
import { estimateBytes, splitByBytes } from './chunks';
import type { PublishRecord } from './publisher';

function record(value: string): PublishRecord {
  return { messageId: 'm', topic: 't', key: 'schlüssel', value, headers: { id: 'm', 'x-ä': '🦊' }, timestamp: 0 };
}

const small = estimateBytes(record('x'.repeat(100)));

describe('splitByBytes', () => {
  it('counts bytes, not characters', () => {
    expect(estimateBytes(record('🦊'.repeat(100))) - estimateBytes(record('x'.repeat(100)))).toBe(300);
  });

  it('keeps the order and stays within the limit', () => {
    const records = Array.from({ length: 25 }, () => record('x'.repeat(100)));
    const chunks = splitByBytes(records, 10 * small);
    expect(chunks.map(({ length }) => length)).toEqual([10, 10, 5]);
    expect(chunks.flat()).toEqual(records.map((_, n) => n));
  });

  it('lets a record that is too large stand alone', () => {
    const records = [record('a'), record('x'.repeat(5_000)), record('b'), record('c')];
    expect(splitByBytes(records, 1_000)).toEqual([[0], [1], [2, 3]]);
  });

  it('makes nothing of nothing', () => {
    expect(splitByBytes([], 1_000)).toEqual([]);
  });
});
