import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { afterAll, beforeAll } from 'vitest';
import { type OwnServer, startOwn } from '../services/index.mjs';
import { KafkaBroker } from './kafka-broker';
import { describePublisher, type PublisherSetup } from './publisher-acceptance';

/** A broker of our own, since it is stopped. */
let server: OwnServer;

beforeAll(async () => {
  server = await startOwn('kafka');
});
afterAll(() => server?.remove());

async function setUp(options: { idempotent: boolean }): Promise<PublisherSetup> {
  const brokers = server.info.brokers ?? [];
  const onlooker = await new KafkaBroker(brokers).connect();
  return {
    create: kafkaPublisher({ clientId: 'acceptance', brokers, ...options }),
    createTopic: (topic) => onlooker.createTopic(topic),
    read: (topic) => onlooker.read(topic),
    topicsMustExist: true,
    outage: { start: () => server.kill('SIGKILL'), end: () => server.restart() },
    close: () => onlooker.close(),
  };
}

describePublisher('the kafkajs publisher', () => setUp({ idempotent: false }));
describePublisher('the kafkajs publisher, idempotent', () => setUp({ idempotent: true }));
