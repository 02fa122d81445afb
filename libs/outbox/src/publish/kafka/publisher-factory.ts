import type { Logger } from '@nestjs/common';
import { TopicRefusedError } from '../../errors';
import type { Deadline } from '../deadline';
import type { PublisherFactory } from '../publisher';
import type { TopicSpec } from '../topic-spec';
import { call } from './call';
import { CONNECT_TIMEOUT, KafkaPublisher } from './kafka-publisher';
import type { QuietLog } from './quiet-log';
import type { KafkaClient } from './session';
import { type TopicClient, TopicCreation } from './topic-creation';

export interface PublisherSettings {
  readonly maxRequestBytes: number;
  readonly topics: readonly TopicSpec[];
  /** Throws what keeps the app from starting. */
  readonly check?: () => void;
}

/** Makes publishers over a client of Kafka, which see to the topics before they connect. */
export function publisherFactory(
  client: KafkaClient & TopicClient,
  { maxRequestBytes, topics, check }: PublisherSettings,
  logger: Logger,
  log: QuietLog,
): PublisherFactory {
  const creation = new TopicCreation(topics, client, logger);
  // What was refused has been said, and its messages wait; a broker that is away is asked again.
  const prepare = (deadline: Deadline): Promise<void> =>
    ensureWithin(deadline, creation).catch((error: unknown) => {
      if (!(error instanceof TopicRefusedError)) throw error;
    });
  return Object.assign(() => new KafkaPublisher({ ...client, prepare }, maxRequestBytes, log), {
    async prepare() {
      check?.();
      await call(CONNECT_TIMEOUT, (deadline) => ensureWithin(deadline, creation)).result;
    },
  });
}

async function ensureWithin(deadline: Deadline, creation: TopicCreation): Promise<void> {
  if ((await deadline.race(creation.ensure())) === null) throw new Error('Kafka did not answer in time when asked for topics');
}
