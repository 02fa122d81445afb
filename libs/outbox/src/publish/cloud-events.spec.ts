import { describe, expect, it } from 'vitest';
import type { LoggedMessage } from '../event/message';
import { checkCloudEvents, cloudEventFormat, type CloudEventsOptions, reservedHeaders } from './cloud-events';

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
  headers: { channel: 'web', tracestate: 'vendor=1' },
  payload: '{"b":1, "a":2}',
  createdAt: 1_767_225_600_123.456,
};
const toCloudEvent = cloudEventFormat({ source: '/shop/orders' });

describe('a message as a CloudEvent', () => {
  it('has its attributes as headers, in their order, and key and value untouched', () => {
    const record = toCloudEvent(message);
    expect(record).toMatchObject({ messageId: message.messageId, topic: 'orders', key: 'order-1', value: '{"b":1, "a":2}', timestamp: 1_767_225_600_123 });
    expect(Object.entries(record.headers)).toEqual([
      ['ce_specversion', '1.0'],
      ['ce_id', message.messageId],
      ['ce_source', '/shop/orders'],
      ['ce_type', 'order.created'],
      ['ce_time', '2026-01-01T00:00:00.123Z'],
      ['ce_subject', 'order-1'],
      ['ce_aggregatetype', 'order'],
      ['ce_tenantid', 'acme'],
      ['ce_correlationid', 'c-1'],
      ['ce_causationid', 'c-0'],
      ['ce_traceparent', message.traceparent],
      ['ce_tracestate', 'vendor=1'],
      ['content-type', 'application/json'],
      ['traceparent', message.traceparent],
      ['channel', 'web'],
      ['tracestate', 'vendor=1'],
    ]);
  });

  it('has no type of its data where it has no data, and the one that it was given', () => {
    expect(toCloudEvent({ ...message, payload: null }).headers).not.toHaveProperty('content-type');
    expect(toCloudEvent({ ...message, headers: { 'content-type': 'text/plain' } }).headers['content-type']).toBe('text/plain');
  });

  it('lets no header of the event pass for one of the library', () => {
    const reserved = reservedHeaders({ source: '/a' });
    const names = [...reserved].filter((name) => name !== 'ce_specversion');
    const forged = Object.fromEntries(names.map((name) => [name, 'forged']));
    const record = toCloudEvent({ ...message, headers: { ...forged, ce_dataschema: 'https://example.com/schema' }, tenantId: null });
    expect(Object.values(record.headers)).not.toContain('forged');
    expect(record.headers['ce_dataschema']).toBe('https://example.com/schema');
  });

  // Only the outbox itself can write such a row: `emit` refuses the header.
  it('leaves one that comes back from a dead-letter topic as its source has made it', () => {
    const foreign = { ce_specversion: '1.0', ce_id: '7', ce_source: '/elsewhere', ce_type: 'thing', ce_own: 'x' };
    const record = toCloudEvent({ ...message, headers: { ...foreign, event_type: 'forged' } });
    expect(record.headers).toMatchObject(foreign);
    expect(Object.values(record.headers)).not.toContain('forged');
    expect(record.headers).not.toHaveProperty('ce_subject');
  });

  it('needs a source that is a URI or a reference', () => {
    for (const source of ['/orders', 'https://example.com/orders?a=b#c', 'urn:shop:orders', 'orders']) {
      expect(checkCloudEvents({ source })).toEqual({ source });
    }
    expect(checkCloudEvents(undefined)).toBeUndefined();
    for (const source of ['', 'with blank', 'ü', 7, undefined, null, 'http://[']) {
      expect(() => checkCloudEvents({ source } as CloudEventsOptions), String(source)).toThrow(/cloudEvents.source must be/);
    }
    expect(() => checkCloudEvents('/orders' as never)).toThrow(/must be an object/);
    expect(() => checkCloudEvents({ source: '/a', type: 'b' } as never)).toThrow(/cloudEvents.type/);
  });
});
