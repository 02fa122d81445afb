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

export interface InMemoryTopicOptions {
  /** Default: 3. */
  readonly partitions?: number;
  /** Largest record that publishers may bring, in bytes. Default: 1,048,576. */
  readonly maxRecordBytes?: number;
}

interface Topic {
  readonly partitions: StoredRecord[][];
  readonly maxRecordBytes: number;
}

/** The topics of an in-memory broker. A topic is created when it is asked for. */
export class TopicLog {
  private readonly topics = new Map<string, Topic>();
  private keyless = 0;

  constructor(private readonly defaults: Required<InMemoryTopicOptions>) {}

  create(topic: string, options: InMemoryTopicOptions): void {
    if (this.topics.has(topic)) throw new Error(`The topic ${topic} exists already`);
    this.open(topic, options);
  }

  partitions(topic: string): readonly (readonly StoredRecord[])[] {
    return this.open(topic).partitions;
  }

  maxRecordBytes(topic: string): number {
    return this.open(topic).maxRecordBytes;
  }

  names(): string[] {
    return [...this.topics.keys()];
  }

  append(topic: string, record: RecordToStore): StoredRecord {
    const { partitions } = this.open(topic);
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

  private open(name: string, options: InMemoryTopicOptions = {}): Topic {
    const existing = this.topics.get(name);
    if (existing !== undefined) return existing;
    const { partitions, maxRecordBytes } = { ...this.defaults, ...options };
    const topic = { partitions: Array.from({ length: partitions }, () => []), maxRecordBytes };
    this.topics.set(name, topic);
    return topic;
  }
}

function toBytes(value: string | Buffer | null): Buffer | null {
  return value === null ? null : Buffer.from(value);
}
