import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { describeGoldenRecords } from './golden-records';

describeGoldenRecords('kafkajs', (brokers) => kafkaPublisher({ brokers }));
