import { randomUUID } from 'node:crypto';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { describePublisher, type PublisherSetup } from './publisher-acceptance';

describePublisher('the in-memory publisher', async (): Promise<PublisherSetup> => {
  const broker = new InMemoryBroker({ maxRecordBytes: 1_000_000 });
  return {
    create: broker.publisher(),
    createTopic: async ({ partitions = 3, maxRecordBytes = 1_000_000 } = {}) => {
      const topic = `t-${randomUUID()}`;
      broker.createTopic(topic, { partitions, maxRecordBytes });
      return topic;
    },
    read: async (topic) =>
      broker.records(topic).map(({ partition, offset, key, value, headers, timestamp }) => ({
        partition,
        offset,
        key,
        value,
        headers: Object.entries(headers),
        timestamp,
      })),
    topicsMustExist: false,
    outage: { start: async () => broker.fail('outage'), end: async () => broker.heal() },
    close: async () => {},
  };
});
