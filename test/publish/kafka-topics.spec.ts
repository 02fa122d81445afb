import { createKafkaJs, createPlatformatic } from './kafka-clients';
import { describeTopicFaults } from './topic-faults';

describeTopicFaults('kafkajs', 'mysql', (settings) => createKafkaJs(settings));
describeTopicFaults('kafkajs, idempotent', 'postgres', (settings) => createKafkaJs({ ...settings, idempotent: true }));
describeTopicFaults('platformatic', 'mariadb', (settings) => createPlatformatic(settings), { mayCreateTopics: false });
describeTopicFaults('platformatic, idempotent', 'postgres', (settings) => createPlatformatic({ ...settings, idempotent: true }), { mayCreateTopics: false });
