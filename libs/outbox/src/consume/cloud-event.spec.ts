import { describe, expect, it } from 'vitest';
import { readCloudEvent } from './cloud-event';

describe('a CloudEvent of somebody else', () => {
  const event = { ce_specversion: '1.0', ce_id: 'A234', ce_source: '/a', ce_type: 'com.example.b' };

  it('has an id that is one of its source', () => {
    expect(readCloudEvent(event)).toMatchObject({ id: '/a A234', event_type: 'com.example.b' });
    expect(readCloudEvent({ ...event, ce_source: '/b' })['id']).toBe('/b A234');
    expect(readCloudEvent({ ...event, ce_id: 'x'.repeat(300) })['id']).toMatch(/^[0-9a-f]{64}$/);
    expect(readCloudEvent({ ...event, ce_id: '1,2' })['id']).toMatch(/^[0-9a-f]{64}$/);
  });

  it('says with all its attributes what the outbox’s own format says', () => {
    const context = { ce_aggregatetype: 'order', ce_tenantid: 'acme', ce_correlationid: 'c-1', ce_causationid: 'c-0', ce_traceparent: '00-a', ce_tracestate: 'b' };
    const id = '0198c0de-0000-7000-8000-000000000001';
    expect(readCloudEvent({ ...event, ...context, ce_id: id })).toMatchObject({
      id,
      event_type: 'com.example.b',
      aggregate_type: 'order',
      tenant_id: 'acme',
      correlation_id: 'c-1',
      causation_id: 'c-0',
      traceparent: '00-a',
      tracestate: 'b',
    });
  });

  it('keeps the headers of the outbox’s own format where it has them, and is left alone where it is none', () => {
    expect(readCloudEvent({ ...event, id: 'own' })['id']).toBe('own');
    expect(readCloudEvent({ ce_id: 'A234' })).toEqual({ ce_id: 'A234' });
    expect(readCloudEvent({ ...event, ce_id: null })).not.toHaveProperty('id');
  });
});
