import { type ClusterCandidate, describeClusterFaults } from './cluster-faults';
import { createKafkaJs, createPlatformatic } from './kafka-clients';

const all: ClusterCandidate[] = [
  { name: 'kafkajs', database: 'postgres', create: (brokers) => createKafkaJs({ brokers }) },
  { name: 'platformatic', database: 'mariadb', create: (brokers) => createPlatformatic({ brokers }) },
  { name: 'kafkajs, idempotent', database: 'mysql', create: (brokers) => createKafkaJs({ brokers, idempotent: true }) },
];
/** A node is killed, found dead, started and in sync again: half a minute each. All of it is for who has the time. */
const HURTS: readonly Pick<ClusterCandidate, 'hurts' | 'replicas'>[] = [{ hurts: ['killed'] }, { hurts: ['frozen'], replicas: false }];

describeClusterFaults(process.env['OUTBOX_TEST_LONG'] ? all : HURTS.map((hurts, n) => ({ ...(all[n] as ClusterCandidate), ...hurts })));
