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
  return {
    topic: record.topic,
    partition,
    ...(record.key === null ? {} : { key: Buffer.from(record.key) }),
    ...(record.value === null ? {} : { value: Buffer.from(record.value) }),
    headers: new Map(Object.entries(record.headers).map(([name, value]) => [Buffer.from(name), Buffer.from(value)])),
    timestamp: BigInt(record.timestamp),
  };
}

/** By the key, as Kafka's Java client does it; records without a key in turn. */
export class PartitionChoice {
  private keyless = randomInt(2 ** 31);

  of(record: PublishRecord, partitionCount: number): number {
    return record.key === null ? this.keyless++ % partitionCount : partitionOf(record.key, partitionCount);
  }
}
