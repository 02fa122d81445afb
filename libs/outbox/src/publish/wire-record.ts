import { RESERVED_HEADERS } from '../event/headers';
import type { LoggedMessage } from '../event/message';
import type { PublishRecord } from './publisher';

/** Makes of a message the record that goes on the wire. */
export type WireFormat = (message: LoggedMessage) => PublishRecord;

type Header = readonly [name: string, value: string];

/** A message as it goes on the wire: the same record that Debezium's outbox event router makes of the same row. */
export function toWireRecord(message: LoggedMessage): PublishRecord {
  const headers: Header[] = [['id', message.messageId], ['event_type', message.type], ['aggregate_type', message.aggregateType]];
  const { tenantId, traceparent, correlationId, causationId } = message;
  if (tenantId !== null) headers.push(['tenant_id', tenantId]);
  if (traceparent !== null) headers.push(['traceparent', traceparent]);
  if (correlationId !== null) headers.push(['correlation_id', correlationId]);
  if (causationId !== null) headers.push(['causation_id', causationId]);
  for (const [name, value] of Object.entries(message.headers)) {
    // Emitting refuses such a name; a row that others wrote may have one, and consumers could not tell the two apart.
    if (!RESERVED_HEADERS.has(name)) headers.push([name, value]);
  }
  return recordOf(message, headers);
}

/** A message's record with these headers. */
export function recordOf(message: LoggedMessage, headers: readonly Header[]): PublishRecord {
  return {
    messageId: message.messageId,
    topic: message.topic,
    key: message.key,
    value: message.payload,
    // fromEntries defines properties: a header named __proto__ is a header like any other.
    headers: Object.fromEntries(headers),
    timestamp: Math.floor(message.createdAt),
  };
}
