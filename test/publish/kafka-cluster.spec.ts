import { describeClusterFaults } from './cluster-faults';
import { createKafkaJs, createPlatformatic } from './kafka-clients';

/** A node is killed, found dead, restarted and in sync again, many times: minutes. The rest of it is for who has them. */
const long = Boolean(process.env['OUTBOX_TEST_LONG']);

describeClusterFaults([
  { name: 'kafkajs', database: 'postgres', create: (brokers) => createKafkaJs({ brokers }) },
  {
    name: 'platformatic',
    database: 'mariadb',
    create: (brokers) => createPlatformatic({ brokers }),
    ...(long ? {} : { hurts: ['killed'], replicas: false }),
  },
  ...(long ? [{ name: 'kafkajs, idempotent', database: 'mysql' as const, create: (brokers: string[]) => createKafkaJs({ brokers, idempotent: true }) }] : []),
]);
