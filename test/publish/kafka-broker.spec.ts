import { describeBrokerFaults } from './broker-faults';
import { createKafkaJs, createPlatformatic } from './kafka-clients';

describeBrokerFaults('kafkajs', 'mariadb', (brokers) => createKafkaJs({ brokers }));
describeBrokerFaults('platformatic, idempotent', 'mysql', (brokers) => createPlatformatic({ brokers, idempotent: true }));
if (process.env['OUTBOX_TEST_LONG']) {
  describeBrokerFaults('kafkajs, idempotent', 'postgres', (brokers) => createKafkaJs({ brokers, idempotent: true }));
}
