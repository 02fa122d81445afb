import { refused, type Refused } from './outcome';
import type { PublishRecord } from './publisher';

const TOPIC_NAME = /^[a-zA-Z0-9._-]{1,249}$/;

/**
 * Refuses a record that no broker would take, before it is sent: a client that chokes on one record while encoding
 * would fail the whole batch, and with an error that names none.
 */
export function refusalOf(record: PublishRecord): Refused | null {
  if (!TOPIC_NAME.test(record.topic) || record.topic === '.' || record.topic === '..') {
    return refused('INVALID_TOPIC_EXCEPTION', `${JSON.stringify(record.topic)} is not a name for a topic`);
  }
  if (!isText(record.key)) return refused('INVALID_RECORD', 'the key is neither text nor null');
  if (!isText(record.value)) return refused('INVALID_RECORD', 'the value is neither text nor null');
  if (!Number.isSafeInteger(record.timestamp) || record.timestamp < 0) {
    return refused('INVALID_TIMESTAMP', `${record.timestamp} is not a time in milliseconds since 1970`);
  }
  for (const name in record.headers) {
    if (typeof record.headers[name] !== 'string') return refused('INVALID_RECORD', `the header ${JSON.stringify(name)} is not text`);
  }
  return null;
}

function isText(value: unknown): boolean {
  return value === null || typeof value === 'string';
}
