import { describeGoldenRecords } from './golden-records';
import { KAFKA_CLIENTS } from './kafka-clients';

for (const { client, create } of KAFKA_CLIENTS) describeGoldenRecords(client, (brokers) => create({ brokers }));
