import { OutboxOptionsError } from '../errors';
import { CLOUD_EVENT_HEADERS } from '../event/cloud-event-headers';
import { RESERVED_HEADERS } from '../event/headers';
import type { LoggedMessage } from '../event/message';
import type { PublishRecord } from './publisher';
import { recordOf, type WireFormat } from './wire-record';

export interface CloudEventsOptions {
  /** What the events come from, as a URI or a reference, such as `/orders` or `https://example.com/orders`. */
  readonly source: string;
}

/** The characters of a URI-reference. */
const URI_REFERENCE = /^[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+$/;

/** @throws OutboxOptionsError */
export function checkCloudEvents(options: CloudEventsOptions | undefined): CloudEventsOptions | undefined {
  if (options === undefined) return undefined;
  if (typeof options !== 'object' || options === null) throw new OutboxOptionsError('cloudEvents must be an object such as { source: "/orders" }.');
  const unknown = Object.keys(options).filter((name) => name !== 'source');
  if (unknown.length > 0) throw new OutboxOptionsError(`Unknown option cloudEvents.${unknown.join(', ')}. Known is: source.`);
  const { source } = options;
  if (typeof source !== 'string' || !URI_REFERENCE.test(source) || !URL.canParse(source, 'http://host')) {
    throw new OutboxOptionsError(`cloudEvents.source must be a URI or a reference, such as "/orders", not ${JSON.stringify(source)}.`);
  }
  return options;
}

/** Headers that the library writes itself in this format, besides those of its own. */
export function reservedHeaders(options: CloudEventsOptions | undefined): ReadonlySet<string> {
  return options === undefined ? RESERVED_HEADERS : new Set([...RESERVED_HEADERS, ...Object.keys(CLOUD_EVENT_HEADERS)]);
}

/** A message as a CloudEvent 1.0 in the binary mode of the Kafka protocol binding. */
export function cloudEventFormat(options: CloudEventsOptions): WireFormat {
  const reserved = reservedHeaders(options);
  return (message) => toCloudEvent(message, options.source, reserved);
}

function toCloudEvent(message: LoggedMessage, source: string, reserved: ReadonlySet<string>): PublishRecord {
  // One that comes back from a dead-letter topic is another source's, and stays it.
  const isAlready = 'ce_specversion' in message.headers;
  const users = Object.entries(message.headers).filter(([name]) => !(isAlready ? RESERVED_HEADERS : reserved).has(name));
  const hasType = users.some(([name]) => name === 'content-type');
  const attributes: Record<keyof typeof CLOUD_EVENT_HEADERS, string | null> = {
    ce_specversion: '1.0',
    ce_id: message.messageId,
    ce_source: source,
    ce_type: message.type,
    ce_time: new Date(Math.floor(message.createdAt)).toISOString(),
    ce_subject: message.aggregateId,
    ce_aggregatetype: message.aggregateType,
    ce_tenantid: message.tenantId,
    ce_correlationid: message.correlationId,
    ce_causationid: message.causationId,
    ce_traceparent: message.traceparent,
    ce_tracestate: message.headers['tracestate'] ?? null,
  };
  const own: (readonly [string, string | null])[] = [
    ...(isAlready ? [] : Object.entries(attributes)),
    // A tombstone has no data that could be of a type.
    ['content-type', message.payload === null || hasType ? null : 'application/json'],
    // For consumers that know Kafka's traces and not those of CloudEvents.
    ['traceparent', message.traceparent],
  ];
  const present = own.filter((header): header is readonly [string, string] => header[1] !== null);
  return recordOf(message, [...present, ...users]);
}
