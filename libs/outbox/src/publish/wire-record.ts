import { RESERVED_HEADERS } from '../event/headers';
import type { LoggedMessage } from '../event/message';
import type { PublishRecord } from './publisher';

/** Makes of a message the record that goes on the wire. */
export type WireFormat = (message: LoggedMessage) => PublishRecord;

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
  // Emitting refuses such a name; a row that others wrote may have one, and consumers could not tell the two apart.
  const users = Object.entries(message.headers).filter(([name]) => !RESERVED_HEADERS.has(name));
  return recordOf(message, [...own, ...users]);
}

/** A message's record with these headers, without those that have no value. */
export function recordOf(message: LoggedMessage, headers: readonly (readonly [string, string | null])[]): PublishRecord {
  const present = headers.filter((header): header is [string, string] => header[1] !== null);
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
