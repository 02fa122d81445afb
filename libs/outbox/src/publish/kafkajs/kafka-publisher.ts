import { Logger } from '@nestjs/common';
import { TopicRefusedError } from '../../errors';
import type { Deadline } from '../deadline';
import { call } from '../kafka/call';
import { CONNECT_TIMEOUT, KafkaPublisher } from '../kafka/kafka-publisher';
import type { KafkaClient } from '../kafka/session';
import type { PublisherFactory } from '../publisher';
import { ClientLog } from './client-log';
import { explain } from './explain';
import { quietIdleQueues } from './idle-queue';
import { type KafkaPublisherOptions, resolveKafkaOptions } from './options';
import { KafkaJsSession } from './session';
import { TopicCreation } from './topic-creation';

/**
 * Publishes through kafkajs, each relay worker with a producer of its own.
 *
 * @example
 * OutboxModule.forRoot({ publisher: kafkaPublisher({ clientId: 'orders', brokers: ['kafka:9092'] }) })
 *
 * @throws OutboxOptionsError when an option is missing or makes no sense
 */
export function kafkaPublisher(options: KafkaPublisherOptions): PublisherFactory {
  const resolved = resolveKafkaOptions(options);
  quietIdleQueues();
  const logger = new Logger('KafkaPublisher');
  const log = new ClientLog(logger);
  const topics = new TopicCreation(resolved, logger);
  const client: KafkaClient = {
    createSession: (first) => new KafkaJsSession(resolved, log, first),
    explain,
    // What was refused has been said, and its messages wait; a broker that is away is asked again.
    prepare: (deadline) =>
      ensureWithin(deadline, topics).catch((error: unknown) => {
        if (!(error instanceof TopicRefusedError)) throw error;
      }),
  };
  return Object.assign(() => new KafkaPublisher(client, resolved.maxRequestBytes, log), {
    prepare: () => call(CONNECT_TIMEOUT, (deadline) => ensureWithin(deadline, topics)).result,
  });
}

async function ensureWithin(deadline: Deadline, topics: TopicCreation): Promise<void> {
  if ((await deadline.race(topics.ensure())) === null) throw new Error('Kafka did not answer in time when asked for topics');
}
