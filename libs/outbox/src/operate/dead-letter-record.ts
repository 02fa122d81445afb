import { readCloudEvent } from '../consume/cloud-event';
import { RESERVED_HEADERS } from '../event/headers';
import type { OutboxMessage } from '../event/message';
import { isTopic, MAX_NAME_LENGTH } from '../event/to-message';
import type { TopicRecord } from './kafka-topic';

/** A record of a dead-letter topic. */
export interface DeadLetter {
  readonly partition: number;
  readonly offset: string;
  readonly at: Date;
  /** Who gave the message up, why, and after how many attempts. */
  readonly consumer: string | null;
  readonly error: string | null;
  readonly reason: string | null;
  readonly attempts: number | null;
  /** Where the message was. */
  readonly origin: { readonly topic: string; readonly partition: number; readonly offset: string } | null;
  /** The message's own id. */
  readonly messageId: string | null;
  readonly type: string | null;
  readonly key: string | null;
}

/** Why a dead letter cannot be replayed. */
export type NotReplayable =
  /** It does not say where it comes from: it is no dead letter of this library. */
  | 'no-origin'
  /** Its message had no id, or one that is no UUID: the outbox could not keep it. */
  | 'no-uuid'
  /** Its message has a key, value or header that is not text or too long for the log. */
  | 'not-text';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const OWN_HEADERS: ReadonlySet<string> = new Set(
  ['consumer', 'error', 'reason', 'stack', 'attempts', 'topic', 'partition', 'offset', 'timestamp', 'id', 'consumed_id'].map((name) => `dlt_${name}`),
);

export function describeLetter(record: TopicRecord): DeadLetter {
  const header = headersOf(record);
  const [topic, partition, offset] = [header['dlt_topic'], header['dlt_partition'], header['dlt_offset']];
  const attempts = header['dlt_attempts'];
  return {
    partition: record.partition,
    offset: record.offset,
    at: new Date(Number(record.timestamp)),
    consumer: header['dlt_consumer'] ?? null,
    error: header['dlt_error'] ?? null,
    reason: header['dlt_reason'] ?? null,
    attempts: attempts === undefined ? null : Number(attempts),
    origin: topic === undefined ? null : { topic, partition: Number(partition), offset: String(offset) },
    messageId: header['dlt_id'] ?? null,
    type: header['event_type'] ?? null,
    key: record.key === null ? null : record.key.toString('utf8'),
  };
}

/** The message as it was, with id, key, value and headers. */
export function originalMessage(record: TopicRecord): OutboxMessage | NotReplayable {
  const headers = headersOf(record);
  const [topic, id] = [headers['dlt_topic'], headers['dlt_id']];
  if (topic === undefined || !isTopic(topic)) return 'no-origin';
  if (id === undefined || !UUID.test(id)) return 'no-uuid';
  const key = record.key === null ? null : record.key.toString('utf8');
  // What else begins like this is a part that travels in another form.
  const isWhole = Object.keys(headers).every((name) => !name.startsWith('dlt_') || name.startsWith('dlt_ce_') || OWN_HEADERS.has(name));
  if (!isWhole || (key !== null && (key === '' || key.length > MAX_NAME_LENGTH))) return 'not-text';
  const own = Object.entries(headers).filter(([name]) => !RESERVED_HEADERS.has(name) && !/^(dlt|ce)_/.test(name));
  // A CloudEvent comes back as what it was; what the dead letter itself has of this is its own.
  const attributes = Object.entries(headers).flatMap(([name, value]) => (name.startsWith('dlt_ce_') ? [[name.slice('dlt_'.length), value]] : []));
  return {
    messageId: id,
    topic,
    key,
    type: headers['event_type'] ?? 'dead-letter',
    aggregateType: headers['aggregate_type'] ?? topic,
    aggregateId: key ?? id,
    tenantId: headers['tenant_id'] ?? null,
    traceparent: headers['traceparent'] ?? null,
    correlationId: headers['correlation_id'] ?? null,
    causationId: headers['causation_id'] ?? null,
    headers: Object.fromEntries([...own, ...attributes]) as Record<string, string>,
    payload: record.value === null ? null : record.value.toString('utf8'),
  };
}

/** The id that its consumer knows the message by. */
export function consumedId(record: TopicRecord): string | undefined {
  const { dlt_consumed_id: consumed, dlt_id: id } = headersOf(record);
  return consumed ?? id;
}

function headersOf({ headers }: TopicRecord): Readonly<Record<string, string>> {
  const texts = Object.fromEntries(
    Object.entries(headers ?? {}).flatMap(([name, value]) => {
      const last = Array.isArray(value) ? value.at(-1) : value;
      return last === undefined || last === null ? [] : [[name, last.toString()] as const];
    }),
  );
  return readCloudEvent(texts) as Record<string, string>;
}
