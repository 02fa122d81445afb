import { Logger } from '@nestjs/common';
import { publisherFactory } from '../kafka/publisher-factory';
import type { PublisherFactory } from '../publisher';
import { ClientLog } from './client-log';
import { explain } from './explain';
import { quietIdleQueues } from './idle-queue';
import { makeEncoderLean } from './lean-encoder';
import { assertCodec, type KafkaPublisherOptions, resolveKafkaOptions } from './options';
import { KafkaJsSession } from './session';
import { KafkaJsTopicAdmin } from './topic-admin';

/**
 * Publishes through kafkajs, each relay worker with a producer of its own.
 *
 * @example
 * OutboxModule.forRoot({ publisher: kafkaPublisher({ clientId: 'orders', brokers: ['kafka:9092'] }) })
 *
 * @throws OutboxOptionsError when an option is missing, unknown or makes no sense
 */
export function kafkaPublisher(options: KafkaPublisherOptions): PublisherFactory {
  const resolved = resolveKafkaOptions(options);
  quietIdleQueues();
  makeEncoderLean();
  const logger = new Logger('KafkaPublisher');
  const log = new ClientLog(logger);
  const client = {
    createSession: (first: number) => new KafkaJsSession(resolved, log, first),
    openAdmin: () => KafkaJsTopicAdmin.open(resolved.client),
    explain,
  };
  return publisherFactory(client, { ...resolved, check: () => assertCodec(resolved.compression) }, logger, log);
}
