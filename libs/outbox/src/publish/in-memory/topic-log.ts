import { partitionOf } from '../partitioner';

/** A record as it lies in a partition. */
export interface StoredRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, Buffer>>;
  readonly timestamp: number;
}

/** A record to be stored; the partition follows from the key. */
export interface RecordToStore {
  readonly key?: string | Buffer | null;
  readonly value: string | Buffer | null;
  readonly headers?: Readonly<Record<string, string | Buffer>>;
  /** Milliseconds since 1970, UTC. Default: now. */
  readonly timestamp?: number;
}

/** The topics of an in-memory broker. */
export class TopicLog {
  private readonly topics = new Map<string, StoredRecord[][]>();
  private keyless = 0;

  constructor(private readonly partitionCount: number) {}

  /** The partitions of a topic, which is created when it is not there yet. */
  partitions(topic: string, partitionCount = this.partitionCount): readonly (readonly StoredRecord[])[] {
    return this.open(topic, partitionCount);
  }

  names(): string[] {
    return [...this.topics.keys()];
  }

  append(topic: string, record: RecordToStore): StoredRecord {
    const partitions = this.open(topic, this.partitionCount);
    const key = toBytes(record.key ?? null);
    const partition = key === null ? this.keyless++ % partitions.length : partitionOf(key, partitions.length);
    const records = partitions[partition];
    if (records === undefined) throw new RangeError(`the topic ${topic} has no partition ${partition}`);
    const stored: StoredRecord = {
      topic,
      partition,
      offset: records.length,
      key,
      value: toBytes(record.value),
      headers: Object.fromEntries(
        Object.entries(record.headers ?? {}).map(([name, value]) => [name, Buffer.from(value)] as const),
      ),
      timestamp: record.timestamp ?? Date.now(),
    };
    records.push(stored);
    return stored;
  }

  private open(topic: string, partitionCount: number): StoredRecord[][] {
    let partitions = this.topics.get(topic);
    if (partitions === undefined) {
      partitions = Array.from({ length: partitionCount }, () => []);
      this.topics.set(topic, partitions);
    }
    return partitions;
  }
}

function toBytes(value: string | Buffer | null): Buffer | null {
  return value === null ? null : Buffer.from(value);
}
