import { afterAll, beforeAll } from 'vitest';
import { type OwnServer, startOwn } from '../services/index.mjs';
import { KafkaBroker } from './kafka-broker';
import { KAFKA_CLIENTS } from './kafka-clients';
import { describePublisher } from './publisher-acceptance';

/** A broker of our own, since it is stopped. */
let server: OwnServer;

beforeAll(async () => {
  server = await startOwn('kafka');
});
afterAll(() => server?.remove());

for (const { client, create } of KAFKA_CLIENTS) {
  for (const idempotent of [false, true]) {
    describePublisher(`the ${client} publisher, idempotent: ${idempotent}`, async () => {
      const brokers = server.info.brokers ?? [];
      const onlooker = await new KafkaBroker(brokers).connect();
      return {
        create: create({ brokers, idempotent }),
        createTopic: (topic) => onlooker.createTopic(topic),
        read: (topic) => onlooker.read(topic),
        topicsMustExist: true,
        outage: { start: () => server.kill('SIGKILL'), end: () => server.restart() },
        close: () => onlooker.close(),
      };
    });
  }
}
