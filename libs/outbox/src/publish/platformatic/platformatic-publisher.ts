import { Logger } from '@nestjs/common';
import { publisherFactory } from '../kafka/publisher-factory';
import { QuietLog } from '../kafka/quiet-log';
import type { PublisherFactory } from '../publisher';
import { explain } from './explain';
import { type PlatformaticPublisherOptions, resolvePlatformaticOptions } from './options';
import { PlatformaticSession } from './session';
import { PlatformaticTopicAdmin } from './topic-admin';

/**
 * Publishes through @platformatic/kafka, each relay worker with a producer of its own: the same records on the same
 * partitions as `kafkaPublisher`, faster.
 *
 * @example
 * OutboxModule.forRoot({ publisher: platformaticPublisher({ clientId: 'orders', bootstrapBrokers: ['kafka:9092'] }) })
 *
 * @throws OutboxOptionsError when an option is missing, unknown or makes no sense
 */
export function platformaticPublisher(options: PlatformaticPublisherOptions): PublisherFactory {
  const resolved = resolvePlatformaticOptions(options);
  const logger = new Logger('PlatformaticPublisher');
  const log = new QuietLog(logger);
  const client = {
    createSession: (first: number) => new PlatformaticSession(resolved, log, first),
    openAdmin: () => PlatformaticTopicAdmin.open(resolved.client),
    explain,
  };
  return publisherFactory(client, resolved, logger, log);
}
