import { randomInt } from 'node:crypto';
import { partitionOf } from '../partitioner';
import type { PublishRecord } from '../publisher';

/** A message as the client takes it, every part in bytes. */
export interface ClientMessage {
  readonly topic: string;
  readonly partition: number;
  readonly key?: Buffer;
  readonly value?: Buffer;
  readonly headers: Map<Buffer, Buffer>;
  readonly timestamp: bigint;
}

export function toClientMessage(record: PublishRecord, partition: number): ClientMessage {
  const headers = new Map<Buffer, Buffer>();
  for (const name in record.headers) headers.set(nameInBytes(name), Buffer.from(record.headers[name] ?? ''));
  return {
    topic: record.topic,
    partition,
    ...(record.key === null ? {} : { key: Buffer.from(record.key) }),
    ...(record.value === null ? {} : { value: Buffer.from(record.value) }),
    headers,
    timestamp: BigInt(record.timestamp),
  };
}

/** Most names of headers are the same in all messages. */
const names = new Map<string, Buffer>();
const MOST_NAMES = 100;

function nameInBytes(name: string): Buffer {
  const known = names.get(name);
  if (known !== undefined) return known;
  const bytes = Buffer.from(name);
  if (names.size < MOST_NAMES) names.set(name, bytes);
  return bytes;
}

/** By the key, as Kafka's Java client does it; records without a key in turn. */
export class PartitionChoice {
  private keyless = randomInt(2 ** 31);

  of(record: PublishRecord, partitionCount: number): number {
    return record.key === null ? this.keyless++ % partitionCount : partitionOf(record.key, partitionCount);
  }
}
