import { Logger } from '@nestjs/common';
import { KafkaPublisher } from '../kafka/kafka-publisher';
import { QuietLog } from '../kafka/quiet-log';
import type { KafkaClient } from '../kafka/session';
import type { PublisherFactory } from '../publisher';
import { explain } from './explain';
import { type PlatformaticPublisherOptions, resolvePlatformaticOptions } from './options';
import { PlatformaticSession } from './session';

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
  const log = new QuietLog(new Logger('PlatformaticPublisher'));
  const client: KafkaClient = { createSession: (first) => new PlatformaticSession(resolved, log, first), explain };
  return () => new KafkaPublisher(client, resolved.maxRequestBytes, log);
}
