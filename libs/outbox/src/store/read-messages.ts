import type { ClaimedMessage } from './claim';
import type { Dialect, Sql } from './dialect';
import type { Ref } from './refs';

interface Row {
  id: string;
  message_id: string;
  aggregate_type: string;
  aggregate_id: string;
  message_key: string | null;
  tenant_id: string | null;
  traceparent: string | null;
  correlation_id: string | null;
  causation_id: string | null;
  event_type: string;
  topic: string;
  headers: string | null;
  payload: string | null;
  retry_count: number;
  created_ms: number | string;
}

/** Reads messages by primary key, in the order of the refs. */
export async function readMessages(
  sql: Sql,
  dialect: Dialect,
  refs: readonly Ref[],
): Promise<{ readonly messages: readonly ClaimedMessage[]; readonly orphans: readonly Ref[] }> {
  if (refs.length === 0) return { messages: [], orphans: [] };
  const { tables, idText, idIn, epochMs } = dialect;
  const rows = (await sql.query(
    `SELECT ${idText('m.id')} AS id, m.message_id, m.aggregate_type, m.aggregate_id, m.message_key, m.tenant_id,
      m.traceparent, m.correlation_id, m.causation_id, m.event_type, m.topic, m.headers, m.payload,
      m.retry_count, ${epochMs('m.created_at')} AS created_ms
     FROM ${tables.message} m WHERE ${idIn('m.id', refs.map((ref) => ref.id))}`,
  )) as Row[];
  const byId = new Map(rows.map((row) => [row.id, row]));
  const messages: ClaimedMessage[] = [];
  const orphans: Ref[] = [];
  for (const ref of refs) {
    const row = byId.get(ref.id);
    if (row) messages.push(toClaimed(row, ref));
    else orphans.push(ref);
  }
  return { messages, orphans };
}

function toClaimed(row: Row, ref: Ref): ClaimedMessage {
  const headers = parseHeaders(row.headers);
  return {
    id: row.id,
    lane: ref.lane,
    messageId: row.message_id,
    aggregateType: row.aggregate_type,
    aggregateId: row.aggregate_id,
    key: row.message_key,
    tenantId: row.tenant_id,
    traceparent: row.traceparent,
    correlationId: row.correlation_id,
    causationId: row.causation_id,
    type: row.event_type,
    topic: row.topic,
    headers: headers ?? {},
    payload: row.payload,
    createdAt: Number(row.created_ms),
    attempts: Number(row.retry_count),
    source: ref.source,
    bytes: ref.bytes,
    defect: headers ? null : 'the headers are not a JSON object of texts',
  };
}

function parseHeaders(text: string | null): Record<string, string> | undefined {
  if (text === null) return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return Object.values(value).every((header) => typeof header === 'string') ? (value as Record<string, string>) : undefined;
  } catch {
    return undefined;
  }
}
