import { describeClusterFaults } from './cluster-faults';
import { createKafkaJs, createPlatformatic } from './kafka-clients';

describeClusterFaults('kafkajs', 'postgres', (brokers) => createKafkaJs({ brokers }));
describeClusterFaults('kafkajs, idempotent', 'mysql', (brokers) => createKafkaJs({ brokers, idempotent: true }));
describeClusterFaults('platformatic', 'mariadb', (brokers) => createPlatformatic({ brokers }));
