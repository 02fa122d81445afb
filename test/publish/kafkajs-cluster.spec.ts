import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { describeClusterFaults } from './cluster-faults';

describeClusterFaults('kafkajs', 'postgres', (brokers) => kafkaPublisher({ clientId: 'cluster', brokers }));
describeClusterFaults('kafkajs, idempotent', 'mysql', (brokers) => kafkaPublisher({ clientId: 'cluster', brokers, idempotent: true }));
