import { randomUUID } from 'node:crypto';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { describePublisher } from './publisher-acceptance';

const broker = new InMemoryBroker({ maxRecordBytes: 1_000_000 });

function createTopic(options: { partitions: number; maxRecordBytes?: number }): string {
  const topic = `t-${randomUUID()}`;
  broker.createTopic(topic, options);
  return topic;
}

describePublisher('the in-memory publisher', {
  create: broker.publisher(),
  createTopic: async ({ partitions }) => createTopic({ partitions }),
  createNarrowTopic: async ({ partitions }) => createTopic({ partitions, maxRecordBytes: 20_000 }),
  read: async (topic) =>
    broker.records(topic).map(({ partition, offset, key, value, headers, timestamp }) => ({
      partition,
      offset,
      key,
      value,
      headers: Object.entries(headers),
      timestamp,
    })),
  impossibleTopic: 'no topic',
  outage: { start: async () => broker.fail('outage'), end: async () => broker.heal() },
});
