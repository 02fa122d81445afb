import type { PublishRecord } from './publisher';

/** What a record costs beside its bytes: lengths, deltas, attributes. Rather too much than too little. */
const RECORD_OVERHEAD = 32;
const HEADER_OVERHEAD = 8;

/** Bytes that a record takes in a request, at most; without compression. */
export function estimateBytes(record: PublishRecord): number {
  let bytes = RECORD_OVERHEAD;
  if (record.key !== null) bytes += Buffer.byteLength(record.key);
  if (record.value !== null) bytes += Buffer.byteLength(record.value);
  for (const name in record.headers) {
    bytes += HEADER_OVERHEAD + Buffer.byteLength(name) + Buffer.byteLength(record.headers[name] ?? '');
  }
  return bytes;
}

/**
 * Cuts records into runs that stay within `maxBytes`, in their order. A record that alone is larger makes a run of its
 * own: how much is too much is for the broker to say.
 */
export function splitByBytes(records: readonly PublishRecord[], maxBytes: number): number[][] {
  const chunks: number[][] = [];
  let chunk: number[] = [];
  let size = 0;
  records.forEach((record, index) => {
    const bytes = estimateBytes(record);
    if (chunk.length > 0 && size + bytes > maxBytes) {
      chunks.push(chunk);
      chunk = [];
      size = 0;
    }
    chunk.push(index);
    size += bytes;
  });
  if (chunk.length > 0) chunks.push(chunk);
  return chunks;
}
