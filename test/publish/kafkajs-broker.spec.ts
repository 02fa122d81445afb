import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { describeBrokerFaults } from './broker-faults';

describeBrokerFaults('kafkajs', 'mariadb', (brokers) => kafkaPublisher({ brokers }));
describeBrokerFaults('kafkajs, idempotent', 'postgres', (brokers) => kafkaPublisher({ brokers, idempotent: true }));
