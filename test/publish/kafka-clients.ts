import { CompressionTypes } from 'kafkajs';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { platformaticPublisher } from 'nestjs-transactional-outbox/platformatic';
import type { PublisherFactory } from '../../libs/outbox/src/publish/publisher';

export interface ClientSettings {
  readonly brokers: readonly string[];
  readonly idempotent?: boolean;
  readonly gzip?: boolean;
  readonly maxRequestBytes?: number;
}

/** The publishers over the clients of Kafka: each has to pass the same tests. */
export const KAFKA_CLIENTS: readonly { readonly client: string; readonly create: (settings: ClientSettings) => PublisherFactory }[] = [
  {
    client: 'kafkajs',
    create: ({ brokers, gzip = false, ...settings }) =>
      kafkaPublisher({
        clientId: 'test',
        brokers: [...brokers],
        ...settings,
        ...(gzip ? { compression: CompressionTypes.GZIP } : {}),
      }),
  },
  {
    client: 'platformatic',
    create: ({ brokers, gzip = false, ...settings }) =>
      platformaticPublisher({
        clientId: 'test',
        bootstrapBrokers: brokers,
        ...settings,
        compression: gzip ? 'gzip' : 'none',
      }),
  },
];
