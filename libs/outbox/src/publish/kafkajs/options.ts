import { CompressionCodecs, CompressionTypes, type KafkaConfig, type ProducerConfig } from 'kafkajs';
import { OutboxOptionsError } from '../../errors';
import { requestBytes } from '../kafka/limits';
import { checkTopics, type TopicSpec } from '../topic-spec';

/** Settings of the kafkajs producer that a publisher may use. */
export interface KafkaProducerOptions extends Omit<ProducerConfig, 'transactionalId' | 'transactionTimeout' | 'retry'> {
  /**
   * Whether a topic that does not exist is created by the first message to it, as far as the brokers allow it.
   * Default: false, its messages wait until somebody creates it with the partitions that it ought to have.
   */
  readonly allowAutoTopicCreation?: boolean;
}

/** What is the same in both forms of options. */
export interface KafkaPublisherSettings {
  readonly producer?: KafkaProducerOptions;
  /**
   * Uses Kafka's idempotent producer. It keeps a retry inside the client from storing a batch twice. It knows nothing
   * of batches that were sent before by another producer, which is what a crash or a timeout of the relay comes to, so
   * consumers need to recognise repeats all the same. Default: false.
   */
  readonly idempotent?: boolean;
  /** Codec of the batches; all but gzip need a codec package registered with kafkajs. Default: none. */
  readonly compression?: CompressionTypes;
  /**
   * Bytes of records that go into one request, before compression. A record that alone is larger is still sent, and
   * the broker decides. Default: 900,000, which leaves room under the 1 MiB that Kafka takes by default.
   */
  readonly maxRequestBytes?: number;
  /**
   * Topics that are created where they do not exist, by the process that relays, when it starts; while the broker is
   * away, before the first batch. What is there is never altered. Default: none, and then nothing is ever created.
   */
  readonly topics?: readonly TopicSpec[];
}

/** kafkajs's own client options, as `new Kafka(…)` takes them. `retry` has no effect: the relay does the retrying. */
export interface KafkaFlatOptions extends KafkaConfig, KafkaPublisherSettings {
  readonly client?: never;
  readonly send?: never;
}

/** The `options` of Nest's `ClientKafka` and `KafkaOptions`, as they are. */
export interface KafkaNestOptions extends KafkaPublisherSettings, Partial<Record<KafkaNestUnused, unknown>> {
  /** Needed, though Nest has it as optional. */
  readonly client?: KafkaConfig;
  /**
   * `acks` other than -1 (all) is an error: a record counts as published when all in-sync replicas have it. `timeout`
   * has no effect: `relay.publishTimeout` has.
   */
  readonly send?: { readonly acks?: number; readonly timeout?: number; readonly compression?: CompressionTypes };
  readonly brokers?: never;
}

/** Options of Nest that concern consumers, or what Nest itself sends. They are not looked at. */
export type KafkaNestUnused =
  | 'consumer'
  | 'deserializer'
  | 'parser'
  | 'postfixId'
  | 'producerOnlyMode'
  | 'run'
  | 'serializer'
  | 'subscribe';

export type KafkaPublisherOptions = KafkaFlatOptions | KafkaNestOptions;

export interface ResolvedKafkaOptions {
  readonly client: KafkaConfig;
  readonly producer: KafkaProducerOptions;
  readonly idempotent: boolean;
  readonly compression: CompressionTypes | undefined;
  readonly maxRequestBytes: number;
  readonly topics: readonly TopicSpec[];
}

const SETTINGS: Record<keyof KafkaPublisherSettings, true> = {
  producer: true,
  idempotent: true,
  compression: true,
  maxRequestBytes: true,
  topics: true,
};
const CLIENT: Record<keyof KafkaConfig, true> = {
  brokers: true,
  ssl: true,
  sasl: true,
  clientId: true,
  connectionTimeout: true,
  authenticationTimeout: true,
  reauthenticationThreshold: true,
  requestTimeout: true,
  enforceRequestTimeout: true,
  retry: true,
  socketFactory: true,
  logLevel: true,
  logCreator: true,
};
const NEST: Record<Exclude<keyof KafkaNestOptions, keyof KafkaPublisherSettings | 'brokers'>, true> = {
  client: true,
  send: true,
  consumer: true,
  deserializer: true,
  parser: true,
  postfixId: true,
  producerOnlyMode: true,
  run: true,
  serializer: true,
  subscribe: true,
};
const PRODUCER: Record<keyof KafkaProducerOptions | 'retry', true> = {
  createPartitioner: true,
  metadataMaxAge: true,
  allowAutoTopicCreation: true,
  idempotent: true,
  maxInFlightRequests: true,
  retry: true,
};

/** @throws OutboxOptionsError */
export function resolveKafkaOptions(options: KafkaPublisherOptions): ResolvedKafkaOptions {
  if (typeof options !== 'object' || options === null) fail('needs options such as { brokers: ["localhost:9092"] }');
  const isNest = options.client !== undefined;
  assertKnown(options, { ...SETTINGS, ...(isNest ? NEST : CLIENT) }, '');
  assertKnown(options.producer ?? {}, PRODUCER, 'producer.');
  const acks = options.send?.acks ?? -1;
  if (acks !== -1) fail(`needs acks -1 (all in-sync replicas), not ${acks}`);
  const idempotent = options.idempotent ?? options.producer?.idempotent ?? false;
  if (typeof idempotent !== 'boolean') fail('needs idempotent to be true or false');
  const compression = options.compression ?? options.send?.compression;
  if (compression !== undefined && !Object.values(CompressionTypes).includes(compression)) {
    fail(`does not know the compression ${String(compression)}: take one of CompressionTypes of kafkajs`);
  }
  return {
    client: clientOf(options),
    producer: options.producer ?? {},
    idempotent,
    compression,
    maxRequestBytes: requestBytes(options.maxRequestBytes),
    topics: checkTopics(options.topics ?? []),
  };
}

/**
 * Looked at when the relay starts, not when the options are made: an app may register its codec in between.
 *
 * @throws OutboxOptionsError
 */
export function assertCodec(compression: CompressionTypes | undefined): void {
  if (compression === undefined || compression === CompressionTypes.None) return;
  try {
    (CompressionCodecs as Record<number, () => unknown>)[compression]?.();
  } catch (cause) {
    const name = Object.entries(CompressionTypes).find(([, type]) => type === compression)?.[0];
    throw new OutboxOptionsError(
      `kafkajs has no codec for the compression ${name}: register one in its CompressionCodecs, or take GZIP.`,
      { cause },
    );
  }
}

function clientOf(options: KafkaPublisherOptions): KafkaConfig {
  const given = options.client ?? options;
  const client = Object.fromEntries(Object.entries(given).filter(([name]) => !Object.hasOwn(SETTINGS, name))) as object as KafkaConfig;
  const { brokers } = client;
  if (brokers === undefined) fail('needs brokers');
  const isList = Array.isArray(brokers) && brokers.length > 0 && brokers.every((one) => typeof one === 'string' && one !== '');
  if (!isList && typeof brokers !== 'function') fail('needs brokers to be a list such as ["localhost:9092"], or a function that gives one');
  return client;
}

function assertKnown(given: object, known: object, prefix: string): void {
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(known, name));
  if (unknown.length === 0) return;
  fail(`does not take ${unknown.map((name) => prefix + name).join(', ')}. Known are: ${Object.keys(known).join(', ')}`);
}

function fail(what: string): never {
  throw new OutboxOptionsError(`kafkaPublisher ${what}.`);
}
