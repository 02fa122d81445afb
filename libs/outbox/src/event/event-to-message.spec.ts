import { Type } from 'class-transformer';
import { IsInt, IsString, Min, ValidateNested } from 'class-validator';
import { describe, expect, it } from 'vitest';
import { eventToMessage } from './event-to-message';
import type { MessageContext } from './message-context';
import { OutboxEvent, type OutboxEventOptions } from './outbox-event.decorator';
import { toMessage } from './to-message';

class Line {
  @IsInt() @Min(1) quantity!: number;
}

class Order {
  id: string | number | bigint = 'o1';
  @IsString() text = '';
  @ValidateNested({ each: true }) @Type(() => Line) lines: Line[] = [];
}

/** An event class with the given options, and the message of one of its events. */
function messageOf(options: Partial<OutboxEventOptions<Order>>, fields: Partial<Order> = {}, context: MessageContext = {}) {
  class Event extends Order {}
  OutboxEvent<Order>({ type: 'order.made', topic: 'orders', ...options })(Event);
  return eventToMessage(Object.assign(new Event(), fields), 10_000, context);
}
const invalid = (field: string) =>
  expect.objectContaining({ code: 'OUTBOX_EVENT_INVALID', fields: { [field]: expect.any(Array) as unknown } }) as Error;

describe('the message of an event', () => {
  it('has defaults for all that the class does not say', () => {
    const message = messageOf({});
    expect(message).toEqual({
      messageId: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/) as unknown,
      topic: 'orders',
      type: 'order.made',
      key: null,
      aggregateType: 'orders',
      aggregateId: message.messageId,
      tenantId: null,
      traceparent: null,
      correlationId: message.messageId,
      causationId: null,
      headers: {},
      payload: '{"id":"o1","text":"","lines":[]}',
    });
  });

  it('has what the class says', () => {
    const id = '018f3c2e-0000-7000-8000-00000000ABCD';
    const message = messageOf({
      key: (event) => event.id,
      aggregateType: 'order',
      version: 3,
      messageId: () => id,
      headers: () => ({ source: 'shop ✓' }),
    });
    expect(message).toMatchObject({
      messageId: id.toLowerCase(),
      key: 'o1',
      aggregateId: 'o1',
      aggregateType: 'order',
      headers: { event_version: '3', source: 'shop ✓' },
    });
    expect(messageOf({ aggregateId: () => 'a1' })).toMatchObject({ key: 'a1', aggregateId: 'a1' });
    expect(messageOf({ aggregateId: () => 'a1', key: () => 'k1' })).toMatchObject({ key: 'k1', aggregateId: 'a1' });
  });

  it('has what the situation says; its own headers win', () => {
    const context = { tenantId: 't', traceparent: '00-1', correlationId: 'c', causationId: 'm', headers: { a: '1', b: '1' } };
    expect(messageOf({ headers: () => ({ b: '2' }) }, {}, context)).toMatchObject({
      tenantId: 't',
      traceparent: '00-1',
      correlationId: 'c',
      causationId: 'm',
      headers: { a: '1', b: '2' },
    });
  });

  // G8
  it.each([[42, '42'], [0, '0'], [9007199254740993n, '9007199254740993'], ['00', '00'], ['ключ 🔑', 'ключ 🔑']])(
    'takes %s for a key',
    (id, key) => {
      expect(messageOf({ key: () => id })).toMatchObject({ key, aggregateId: key });
    },
  );

  it.each([[null], [undefined], [{}], [true], [''], ['x'.repeat(191)], ['a\u0000b'], ['\ud800']])(
    'refuses %j as a key',
    (id) => {
      expect(() => messageOf({ key: () => id as string })).toThrow(invalid('key'));
    },
  );

  it.each([
    [{ headers: () => ({ n: 1 as unknown as string }) }, 'headers.n'],
    [{ headers: () => ({ id: 'x' }) }, 'headers.id'],
    [{ headers: () => ({ traceparent: 'x' }) }, 'headers.traceparent'],
    [{ headers: () => ({ '': 'x' }) }, 'headers'],
    [{ messageId: () => 'mine' }, 'messageId'],
  ])('refuses what could not be published: %#', (options, field) => {
    expect(() => messageOf(options)).toThrow(invalid(field));
  });

  it('names the field that is invalid, nested ones by their path', () => {
    expect(() => messageOf({}, { text: 5 as unknown as string })).toThrow(invalid('text'));
    const line = Object.assign(new Line(), { quantity: 0 });
    expect(() => messageOf({}, { lines: [line] })).toThrow(invalid('lines.0.quantity'));
  });

  it('is refused when it is too large', () => {
    expect(() => messageOf({}, { text: '€'.repeat(4000) })).toThrow(expect.objectContaining({ code: 'OUTBOX_EVENT_TOO_LARGE' }));
  });

  it('needs the decorator on the very class', () => {
    class Plain {}
    OutboxEvent({ type: 'parent', topic: 't' })(Plain);
    class Child extends Plain {}
    expect(() => eventToMessage(new Child(), 1000, {})).toThrow(expect.objectContaining({ code: 'OUTBOX_EVENT_NOT_DECORATED' }));
  });
});

describe('@OutboxEvent', () => {
  it.each([[{ type: '' }], [{ type: 'x'.repeat(191) }], [{ topic: '' }], [{ topic: 'a b' }], [{ topic: '..' }], [{ topic: 'x'.repeat(250) }]])(
    'refuses %j',
    (options) => {
      expect(() => messageOf(options)).toThrow(expect.objectContaining({ code: 'OUTBOX_OPTIONS_INVALID' }));
    },
  );
});

describe('a raw message', () => {
  it('is sent untouched', () => {
    const raw = { topic: 't', type: 'x', payload: ' {"a": 1} ', key: 'k', headers: { h: 'v' } };
    expect(toMessage(raw, 1000, {})).toMatchObject({ ...raw, aggregateId: 'k', aggregateType: 't' });
    expect(toMessage({ ...raw, payload: null }, 1000, {}).payload).toBeNull();
  });

  it.each([
    [{ topic: 'a b' }, 'topic'],
    [{ type: '' }, 'type'],
    [{ payload: 5 as unknown as string }, 'payload'],
    [{ payload: '\u0000' }, 'payload'],
    [{ messageId: 'x' }, 'messageId'],
  ])('is refused when it could not be stored or sent: %#', (change, field) => {
    expect(() => toMessage({ topic: 't', type: 'x', payload: '{}', ...change }, 1000, {})).toThrow(invalid(field));
  });
});
