import { CompressionTypes } from 'kafkajs';
import type { PublisherFactory, TopicSpec } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { platformaticPublisher } from 'nestjs-transactional-outbox/platformatic';

export interface ClientSettings {
  readonly brokers: readonly string[];
  readonly idempotent?: boolean;
  readonly gzip?: boolean;
  readonly maxRequestBytes?: number;
  /** Whether the client has missing topics made. Not all can. */
  readonly createsTopics?: boolean;
  readonly topics?: readonly TopicSpec[];
}

export function createKafkaJs({ brokers, gzip = false, createsTopics, ...settings }: ClientSettings): PublisherFactory {
  return kafkaPublisher({
    clientId: 'test',
    brokers: [...brokers],
    ...settings,
    ...(createsTopics === undefined ? {} : { producer: { allowAutoTopicCreation: createsTopics } }),
    ...(gzip ? { compression: CompressionTypes.GZIP } : {}),
  });
}

export function createPlatformatic({ brokers, gzip = false, createsTopics, ...settings }: ClientSettings): PublisherFactory {
  if (createsTopics) throw new Error('it never creates a topic');
  return platformaticPublisher({
    clientId: 'test',
    bootstrapBrokers: brokers,
    ...settings,
    compression: gzip ? 'gzip' : 'none',
  });
}

/** The publishers over the clients of Kafka: each has to pass the same tests. */
export const KAFKA_CLIENTS: readonly { readonly client: string; readonly create: (settings: ClientSettings) => PublisherFactory }[] = [
  { client: 'kafkajs', create: createKafkaJs },
  { client: 'platformatic', create: createPlatformatic },
];
