import { isUtf8 } from 'node:buffer';
import { RESERVED_HEADERS } from '../event/headers';
import type { OutboxMessage } from '../event/message';
import { isTopic, MAX_NAME_LENGTH, toMessage } from '../event/to-message';
import { OutboxError } from '../errors';
import type { Delivery } from './delivery';
import { contextText } from './incoming-context';
import { reasonOf } from './reason-of';

/** What is known of a failure that was the last. */
export interface LastFailure {
  readonly consumer: string;
  readonly error: unknown;
  readonly attempts: number | undefined;
  /** The id that the consumer knows the message by; `undefined` when it has none that can be used. */
  readonly messageId: string | undefined;
  /** Default: the message's own topic and `.dlt`. */
  readonly topic: string | undefined;
}

/** Type of a dead letter whose message named none. */
const DEAD_LETTER = 'dead-letter';
const MAX_REASON_LENGTH = 1000;
const MAX_STACK_LENGTH = 4000;
const SUFFIX = '.dlt';
/** What this file adds; a dead letter that fails again gets new ones. */
const OWN_HEADER = /^dlt_/;

/**
 * The message that carries a failed one to its dead-letter topic, with key, value and headers as they were.
 *
 * The log holds text: what is not UTF-8 travels in base64, and the header `dlt_base64` lists which parts do. A
 * header that the outbox writes itself keeps its name, but for `id`, which is the dead letter's own: the failed
 * message's is in `dlt_id`, as is any that the log could not hold in `dlt_…`.
 */
export function deadLetter(delivery: Delivery, failure: LastFailure): OutboxMessage {
  const base64: string[] = [];
  const encode = (part: string, value: unknown): string => {
    const [text, isBase64] = encoded(value);
    if (isBase64) base64.push(part);
    return text;
  };
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(delivery.headers)) {
    if (value === null || value === undefined || OWN_HEADER.test(name) || !isStorable(name)) continue;
    // The dead letter may become a CloudEvent itself, and is not this one.
    if (name.startsWith('ce_')) headers[`dlt_${name}`] = encode(`header ${name}`, value);
    else if (!RESERVED_HEADERS.has(name)) headers[name] = encode(`header ${name}`, value);
    else if (name === 'id' || contextText(value) === undefined) headers[`dlt_${name}`] = encode(`header ${name}`, value);
  }
  const key = contextText(delivery.key);
  if (key === undefined && delivery.key !== null) headers['dlt_key'] = encode('key', delivery.key);
  const payload = delivery.value === null || delivery.value === undefined ? null : encode('value', delivery.value);
  Object.assign(headers, describe(delivery, failure), base64.length > 0 ? { dlt_base64: JSON.stringify(base64) } : {});

  const original = (name: string): string | undefined => contextText(delivery.headers[name]);
  const aggregateType = original('aggregate_type');
  const context = {
    tenantId: original('tenant_id'),
    traceparent: original('traceparent'),
    correlationId: original('correlation_id'),
    causationId: original('causation_id'),
  };
  return toMessage(
    {
      topic: topicOf(delivery, failure),
      type: original('event_type') ?? DEAD_LETTER,
      key: key ?? null,
      payload,
      headers,
      ...(aggregateType === undefined ? {} : { aggregateType }),
    },
    // A message that has come through Kafka is not refused here: the relay parks it where the broker refuses it.
    Number.POSITIVE_INFINITY,
    Object.fromEntries(Object.entries(context).filter(([, value]) => value !== undefined)),
  );
}

function topicOf({ origin }: Delivery, { consumer, topic }: LastFailure): string {
  if (topic !== undefined) return topic;
  const own = `${(origin?.topic ?? consumer.replaceAll(/[^a-zA-Z0-9._-]/g, '_')).slice(0, 249 - SUFFIX.length)}${SUFFIX}`;
  return isTopic(own) ? own : `dead-letters${SUFFIX}`;
}

function describe({ origin, headers }: Delivery, { consumer, error, attempts, messageId }: LastFailure): Record<string, string> {
  const kind = error instanceof OutboxError ? error.code : error instanceof Error ? String(error.name) : typeof error;
  const stack: unknown = error instanceof Error ? error.stack : undefined;
  return {
    dlt_consumer: safe(consumer, MAX_NAME_LENGTH),
    dlt_error: safe(kind, MAX_NAME_LENGTH),
    dlt_reason: safe(reasonOf(error), MAX_REASON_LENGTH),
    ...(typeof stack === 'string' && stack !== '' ? { dlt_stack: safe(stack, MAX_STACK_LENGTH) } : {}),
    ...(attempts === undefined ? {} : { dlt_attempts: String(attempts) }),
    ...(origin && { dlt_topic: origin.topic, dlt_partition: String(origin.partition), dlt_offset: origin.offset }),
    // Whoever brings the message back must have the consumer forget this one.
    ...(messageId === undefined || messageId === headers['id'] ? {} : { dlt_consumed_id: messageId }),
    ...(origin?.timestamp === undefined ? {} : { dlt_timestamp: origin.timestamp }),
  };
}

/** As text, and whether that is base64. */
function encoded(value: unknown): [string, boolean] {
  if (Buffer.isBuffer(value)) {
    const text = isUtf8(value) ? value.toString('utf8') : undefined;
    return text !== undefined && isStorable(text) ? [text, false] : [value.toString('base64'), true];
  }
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return isStorable(text) || text === '' ? [text, false] : [Buffer.from(text).toString('base64'), true];
}

/** PostgreSQL takes no NUL in a text. */
function isStorable(text: string): boolean {
  return text.length > 0 && !text.includes('\u0000') && text.isWellFormed();
}

function safe(text: string, maxLength: number): string {
  return text.slice(0, maxLength).replaceAll('\u0000', '\ufffd').toWellFormed();
}
