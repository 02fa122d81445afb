import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { describeTopicFaults } from './topic-faults';

describeTopicFaults('kafkajs', 'mysql', {
  create: (brokers, { createsTopics }) => kafkaPublisher({ brokers, producer: { allowAutoTopicCreation: createsTopics } }),
});
describeTopicFaults('kafkajs, idempotent', 'postgres', {
  create: (brokers, { createsTopics }) =>
    kafkaPublisher({ brokers, idempotent: true, producer: { allowAutoTopicCreation: createsTopics } }),
});
