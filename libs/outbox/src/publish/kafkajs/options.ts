import type { CompressionTypes, KafkaConfig, ProducerConfig } from 'kafkajs';
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

/** The `options` of Nest's `ClientKafka` and `KafkaOptions`. Those that concern consumers are not looked at. */
export interface KafkaNestOptions extends KafkaPublisherSettings {
  readonly client: KafkaConfig;
  /** `acks` other than -1 (all) is an error: a record counts as published when all in-sync replicas have it. */
  readonly send?: { readonly acks?: number; readonly timeout?: number; readonly compression?: CompressionTypes };
  readonly brokers?: never;
}

export type KafkaPublisherOptions = KafkaFlatOptions | KafkaNestOptions;

export interface ResolvedKafkaOptions {
  readonly client: KafkaConfig;
  readonly producer: KafkaProducerOptions;
  readonly idempotent: boolean;
  readonly compression: CompressionTypes | undefined;
  readonly maxRequestBytes: number;
  readonly topics: readonly TopicSpec[];
}

/** @throws OutboxOptionsError */
export function resolveKafkaOptions(options: KafkaPublisherOptions): ResolvedKafkaOptions {
  const acks = options.send?.acks ?? -1;
  if (acks !== -1) throw new OutboxOptionsError(`kafkaPublisher needs acks -1 (all in-sync replicas), not ${acks}.`);
  return {
    client: clientOf(options),
    producer: options.producer ?? {},
    idempotent: options.idempotent ?? options.producer?.idempotent ?? false,
    compression: options.compression ?? options.send?.compression,
    maxRequestBytes: requestBytes(options.maxRequestBytes),
    topics: checkTopics(options.topics ?? []),
  };
}

function clientOf(options: KafkaPublisherOptions): KafkaConfig {
  if (options.client !== undefined) return options.client;
  const { client, send, producer, idempotent, compression, maxRequestBytes, topics, ...config } = options;
  void [client, send, producer, idempotent, compression, maxRequestBytes, topics];
  if (config.brokers === undefined) throw new OutboxOptionsError('kafkaPublisher needs brokers.');
  return config;
}
