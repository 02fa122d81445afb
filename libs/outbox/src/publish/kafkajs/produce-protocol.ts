import { type PartitionAnswer, unitOf } from '../kafka/session';

/** A produce request: which partitions it writes to. */
export interface ProduceRequest {
  readonly correlationId: number;
  readonly version: number;
  readonly units: readonly string[];
}

const PRODUCE = 0;
/** Request versions of one known layout; kafkajs 2.2 speaks no later ones, and earlier ones carry no headers. */
const OLDEST = 3;
const NEWEST = 7;
const FIRST_WITH_START_OFFSET = 5;

/** Reads the head of a request as kafkajs writes it, or answers `null` when it is not a produce request. */
export function readProduceRequest(bytes: Uint8Array): ProduceRequest | null {
  const reader = new Reader(bytes);
  if (bytes.length < 14) return null;
  reader.skip(4);
  const api = reader.int16();
  const version = reader.int16();
  if (api !== PRODUCE || version < OLDEST || version > NEWEST) return null;
  const correlationId = reader.int32();
  reader.string(); // client id
  reader.string(); // transactional id
  reader.skip(2 + 4); // acks, timeout
  const units = reader.array(() => {
    const topic = reader.string() ?? '';
    return reader.array(() => {
      const unit = unitOf(topic, reader.int32());
      reader.skip(reader.int32());
      return unit;
    });
  });
  return { correlationId, version, units: units.flat() };
}

/** Reads what a response frame, without its length and correlation id, says of each partition. */
export function readProduceResponse(version: number, body: Uint8Array): [unit: string, answer: PartitionAnswer][] {
  const reader = new Reader(body);
  const answers = reader.array(() => {
    const topic = reader.string() ?? '';
    return reader.array((): [string, PartitionAnswer] => {
      const partition = reader.int32();
      const errorCode = reader.int16();
      const baseOffset = reader.int64();
      reader.skip(version >= FIRST_WITH_START_OFFSET ? 16 : 8); // append time, start offset
      return [unitOf(topic, partition), { errorCode, baseOffset: baseOffset < 0n ? null : baseOffset }];
    });
  });
  return answers.flat();
}

class Reader {
  private readonly view: DataView;
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  skip(count: number): void {
    this.at += count;
  }

  int16(): number {
    this.at += 2;
    return this.view.getInt16(this.at - 2);
  }

  int32(): number {
    this.at += 4;
    return this.view.getInt32(this.at - 4);
  }

  int64(): bigint {
    this.at += 8;
    return this.view.getBigInt64(this.at - 8);
  }

  string(): string | null {
    const length = this.int16();
    if (length < 0) return null;
    this.at += length;
    return Buffer.from(this.bytes.subarray(this.at - length, this.at)).toString('utf8');
  }

  array<T>(read: () => T): T[] {
    return Array.from({ length: Math.max(0, this.int32()) }, read);
  }
}
