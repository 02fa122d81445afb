import type { PublisherFactory } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { platformaticPublisher } from 'nestjs-transactional-outbox/platformatic';
import type { KafkaClientName } from './environment.js';

export interface PublisherEnvironment {
  readonly brokers: readonly string[];
  /** Which client publishes. Consumers notice no difference. */
  readonly kafkaClient: KafkaClientName;
}

export function publisherOf(clientId: string, { brokers, kafkaClient }: PublisherEnvironment): PublisherFactory {
  return kafkaClient === 'kafkajs'
    ? kafkaPublisher({ clientId, brokers: [...brokers] })
    : platformaticPublisher({ clientId, bootstrapBrokers: brokers });
}
