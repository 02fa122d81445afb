import { createHash } from 'node:crypto';
import { validate as isUuid } from 'uuid';
import { CLOUD_EVENT_HEADERS } from '../event/cloud-event-headers';

/** Longest id that is kept as it is, in characters. */
const MAX_ID_LENGTH = 190;

/**
 * The headers of a CloudEvent in binary mode with those of the outbox's own format beside them, so that a consumer
 * reads both alike. Headers of other messages are left as they are.
 */
export function readCloudEvent(headers: Record<string, unknown>): Record<string, unknown> {
  if (!('ce_specversion' in headers)) return headers;
  const read: Record<string, unknown> = {};
  for (const [name, own] of Object.entries(CLOUD_EVENT_HEADERS)) {
    const value = headers[name];
    if (own !== null && value !== undefined && value !== null) read[own] = own === 'id' ? idOf(value, headers['ce_source']) : value;
  }
  return { ...read, ...headers };
}

/** A UUID says all. Any other id is one of its source only, and two sources may have the same. */
function idOf(id: unknown, source: unknown): unknown {
  if (typeof id !== 'string' || id === '' || isUuid(id)) return id;
  const text = `${String(source)} ${id}`;
  return text.length > MAX_ID_LENGTH || text.includes(',') ? createHash('sha256').update(text).digest('hex') : text;
}
