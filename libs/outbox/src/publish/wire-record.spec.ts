import { describe, expect, it } from 'vitest';
import type { LoggedMessage } from '../event/message';
import { RESERVED_HEADERS } from '../event/headers';
import { toWireRecord } from './wire-record';

const message: LoggedMessage = {
  id: '7',
  lane: 3,
  messageId: '0198c0de-0000-7000-8000-000000000001',
  topic: 'orders',
  key: 'order-1',
  type: 'order.created',
  aggregateType: 'order',
  aggregateId: 'order-1',
  tenantId: 'acme',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  correlationId: 'c-1',
  causationId: 'c-0',
  headers: { channel: 'web', 'x-emoji': '🦊' },
  payload: '{"b":1, "a":2}',
  createdAt: 1_767_225_600_123.456,
};

describe('toWireRecord', () => {
  it('leaves key and payload untouched and cuts the time to milliseconds', () => {
    const record = toWireRecord(message);
    expect(record).toMatchObject({
      messageId: message.messageId,
      topic: 'orders',
      key: 'order-1',
      value: '{"b":1, "a":2}',
      timestamp: 1_767_225_600_123,
    });
  });

  it('writes the headers in their order: the library’s own, then the user’s', () => {
    expect(Object.entries(toWireRecord(message).headers)).toEqual([
      ['id', message.messageId],
      ['event_type', 'order.created'],
      ['aggregate_type', 'order'],
      ['tenant_id', 'acme'],
      ['traceparent', message.traceparent],
      ['correlation_id', 'c-1'],
      ['causation_id', 'c-0'],
      ['channel', 'web'],
      ['x-emoji', '🦊'],
    ]);
  });

  it('leaves out what is null, and keeps what is empty', () => {
    const record = toWireRecord({ ...message, tenantId: null, traceparent: null, correlationId: '', causationId: null });
    expect(Object.keys(record.headers)).toEqual([
      'id',
      'event_type',
      'aggregate_type',
      'correlation_id',
      'channel',
      'x-emoji',
    ]);
  });

  it('does not let a user’s header take a reserved name, not even an unused one', () => {
    const forged = Object.fromEntries([...RESERVED_HEADERS].map((name) => [name, 'forged']));
    const record = toWireRecord({ ...message, headers: { ...forged, mine: 'yes' }, tenantId: null });
    expect(Object.values(record.headers)).not.toContain('forged');
    expect(record.headers).not.toHaveProperty('tenant_id');
    expect(record.headers['mine']).toBe('yes');
  });

  it('carries a header named __proto__', () => {
    const record = toWireRecord({ ...message, headers: Object.fromEntries([['__proto__', 'odd']]) });
    expect(Object.entries(record.headers)).toContainEqual(['__proto__', 'odd']);
  });

  it('keeps a null payload and an empty one apart', () => {
    expect(toWireRecord({ ...message, payload: null }).value).toBeNull();
    expect(toWireRecord({ ...message, payload: '' }).value).toBe('');
  });
});
