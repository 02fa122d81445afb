import { describe, expect, it } from 'vitest';
import { refusalOf } from './check';
import type { PublishRecord } from './publisher';

const sound: PublishRecord = { messageId: 'm', topic: 'orders.v1_x-y', key: null, value: '', headers: { id: 'm' }, timestamp: 0 };

describe('refusalOf', () => {
  it('lets pass what a broker may take', () => {
    expect(refusalOf(sound)).toBeNull();
    expect(refusalOf({ ...sound, topic: 'x'.repeat(249), key: '', value: null })).toBeNull();
  });

  it.each(['', '.', '..', 'two words', 'ä', 'x'.repeat(250)])('refuses the topic %j', (topic) => {
    expect(refusalOf({ ...sound, topic })).toMatchObject({ status: 'refused', failure: { code: 'INVALID_TOPIC_EXCEPTION' } });
  });

  it('refuses what a client without types might bring', () => {
    const bring = (changes: object) => refusalOf({ ...sound, ...changes })?.failure.code;
    expect(bring({ key: 42 })).toBe('INVALID_RECORD');
    expect(bring({ value: undefined })).toBe('INVALID_RECORD');
    expect(bring({ headers: { n: 1 } })).toBe('INVALID_RECORD');
    expect(bring({ timestamp: Number.NaN })).toBe('INVALID_TIMESTAMP');
    expect(bring({ timestamp: -1 })).toBe('INVALID_TIMESTAMP');
  });
});
