import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { type OwnServer, startOwn } from '../services/index.mjs';
import { KafkaBroker } from './kafka-broker';
import { KAFKA_CLIENTS } from './kafka-clients';
import { describePublisher } from './publisher-acceptance';

/** A broker of our own, since it is stopped. */
let server: OwnServer;
let onlooker: KafkaBroker;

beforeAll(async () => {
  server = await startOwn('kafka');
});
afterAll(() => server?.remove());

for (const { client, create } of KAFKA_CLIENTS) {
  for (const idempotent of [false, true]) {
    describePublisher(
      `the ${client} publisher, idempotent: ${idempotent}`,
      {
        create: () => create({ brokers: server.info.brokers ?? [], idempotent })(),
        createTopic: ({ partitions }) => onlooker.createTopic({ partitions }),
        createNarrowTopic: ({ partitions }) => onlooker.createTopic({ partitions, maxRecordBytes: 20_000 }),
        read: (topic) => onlooker.read(topic),
        impossibleTopic: 'no topic',
        missingTopic: () => `missing-${randomUUID()}`,
        outage: { start: () => server.kill('SIGKILL'), end: () => server.restart() },
        silence: { start: () => server.kill('SIGSTOP'), end: () => server.kill('SIGCONT') },
      },
      {
        begin: async () => {
          onlooker = await new KafkaBroker(server.info.brokers ?? []).connect();
        },
        end: () => onlooker.close(),
      },
    );
  }
}
