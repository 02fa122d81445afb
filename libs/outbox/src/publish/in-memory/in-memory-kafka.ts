import type { LoggerService } from '@nestjs/common';
import type { InMemoryConsumer, InMemoryConsumerOptions } from './in-memory-broker';
import type { RecordToStore, StoredRecord } from './topic-log';

/** What the client needs of a broker. */
export interface InMemoryKafkaBroker {
  consume(options: InMemoryConsumerOptions): InMemoryConsumer;
  produce(topic: string, record: RecordToStore): { readonly partition: number; readonly offset: string };
}

type Listener = (event: { type: string; payload: unknown; timestamp: number }) => void;

/** The part of a kafkajs client that Nest's Kafka server calls. */
export class InMemoryKafka {
  constructor(
    private readonly broker: InMemoryKafkaBroker,
    private readonly logger: LoggerService,
    private readonly fromBeginning: boolean,
  ) {}

  consumer({ groupId }: { groupId: string }): InMemoryKafkaConsumer {
    return new InMemoryKafkaConsumer(this.broker, this.logger, groupId, this.fromBeginning);
  }

  producer(): InMemoryKafkaProducer {
    return new InMemoryKafkaProducer(this.broker);
  }
}

class Emitter {
  private readonly listeners = new Map<string, Set<Listener>>();

  on(event: string, listener: Listener): () => void {
    const listeners = this.listeners.get(event) ?? new Set();
    this.listeners.set(event, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  protected emit(type: string): void {
    for (const listener of this.listeners.get(type) ?? []) listener({ type, payload: null, timestamp: Date.now() });
  }
}

interface Subscription {
  readonly topic?: string | RegExp;
  readonly topics?: readonly (string | RegExp)[];
}

interface Partitions {
  readonly topic: string;
  readonly partitions: readonly number[];
}

export class InMemoryKafkaConsumer extends Emitter {
  readonly events = {
    CONNECT: 'consumer.connect',
    DISCONNECT: 'consumer.disconnect',
    STOP: 'consumer.stop',
    CRASH: 'consumer.crash',
    REBALANCING: 'consumer.rebalancing',
  } as const;
  private topics: (string | RegExp)[] = [];
  private consumer: InMemoryConsumer | null = null;

  constructor(
    private readonly broker: InMemoryKafkaBroker,
    private readonly logger: LoggerService,
    private readonly groupId: string,
    private readonly fromBeginning: boolean,
  ) {
    super();
  }

  async connect(): Promise<void> {
    this.emit(this.events.CONNECT);
  }

  /** One `topic` a call is the older form, which Nest 10.0 uses. `fromBeginning` is the server's own option here. */
  async subscribe({ topic, topics = topic === undefined ? [] : [topic] }: Subscription): Promise<void> {
    this.topics.push(...topics);
  }

  async run({ eachMessage }: { eachMessage: (payload: unknown) => Promise<void> }): Promise<void> {
    this.consumer = this.broker.consume({
      groupId: this.groupId,
      topics: this.topics,
      fromBeginning: this.fromBeginning,
      eachMessage: (record) => eachMessage(toPayload(record)),
      onError: (error, { topic, partition, offset }) => {
        this.logger.warn(`${this.groupId}: a record of ${topic}/${partition} at ${offset} failed: ${reasonOf(error)}`);
      },
    });
  }

  pause(places: readonly Partitions[]): void {
    for (const { topic, partitions } of places) this.consumer?.pause(topic, partitions);
  }

  resume(places: readonly Partitions[]): void {
    for (const { topic, partitions } of places) this.consumer?.resume(topic, partitions);
  }

  async stop(): Promise<void> {
    await this.consumer?.close();
    this.consumer = null;
    this.emit(this.events.STOP);
  }

  async disconnect(): Promise<void> {
    await this.stop();
    this.emit(this.events.DISCONNECT);
  }

  /** Offsets are committed by the broker, record by record. */
  async commitOffsets(): Promise<void> {}
}

export class InMemoryKafkaProducer extends Emitter {
  readonly events = { CONNECT: 'producer.connect', DISCONNECT: 'producer.disconnect' } as const;

  constructor(private readonly broker: InMemoryKafkaBroker) {
    super();
  }

  async connect(): Promise<void> {
    this.emit(this.events.CONNECT);
  }

  async disconnect(): Promise<void> {
    this.emit(this.events.DISCONNECT);
  }

  async send({ topic, messages }: { topic: string; messages: (RecordToStore & { timestamp?: unknown })[] }) {
    return messages.map(({ key = null, value, headers = {}, timestamp }) => {
      const time = timestamp === undefined ? {} : { timestamp: Number(timestamp) };
      const { partition, offset } = this.broker.produce(topic, { key, value, headers, ...time });
      return { topicName: topic, partition, errorCode: 0, baseOffset: offset };
    });
  }

  async sendBatch({ topicMessages }: { topicMessages: Parameters<InMemoryKafkaProducer['send']>[0][] }) {
    return (await Promise.all(topicMessages.map((entry) => this.send(entry)))).flat();
  }
}

/** Nest's filters turn what a handler throws into a plain object with a message. */
function reasonOf(error: unknown): string {
  const message = typeof error === 'object' && error !== null && 'message' in error ? error.message : error;
  return String(message);
}

function toPayload(record: StoredRecord): unknown {
  const { topic, partition, offset, key, value, headers, timestamp } = record;
  return {
    topic,
    partition,
    message: {
      key,
      value,
      headers: { ...headers },
      timestamp: String(timestamp),
      offset: String(offset),
      attributes: 0,
      size: value?.length ?? 0,
    },
    heartbeat: async () => {},
    pause: () => () => {},
  };
}
