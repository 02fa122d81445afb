import type { LoggedMessage } from '../event/message';
import type { PublishRecord } from './publisher';

/**
 * Header names that the library writes itself, in the order in which they are written. A user's own header of one of
 * these names is left out, also where the message has no value for it: consumers could not tell the two apart.
 */
export const RESERVED_HEADERS = [
  'id',
  'event_type',
  'aggregate_type',
  'tenant_id',
  'traceparent',
  'correlation_id',
  'causation_id',
] as const;

const reserved: ReadonlySet<string> = new Set(RESERVED_HEADERS);

/** A message as it goes on the wire: the same record that Debezium's outbox event router makes of the same row. */
export function toWireRecord(message: LoggedMessage): PublishRecord {
  const own: [string, string | null][] = [
    ['id', message.messageId],
    ['event_type', message.type],
    ['aggregate_type', message.aggregateType],
    ['tenant_id', message.tenantId],
    ['traceparent', message.traceparent],
    ['correlation_id', message.correlationId],
    ['causation_id', message.causationId],
  ];
  const users = Object.entries(message.headers).filter(([name]) => !reserved.has(name));
  const present = [...own, ...users].filter((header): header is [string, string] => header[1] !== null);
  return {
    messageId: message.messageId,
    topic: message.topic,
    key: message.key,
    value: message.payload,
    // fromEntries defines properties: a header named __proto__ is a header like any other.
    headers: Object.fromEntries(present),
    timestamp: Math.floor(message.createdAt),
  };
}
