export { KafkaBatchServer } from './consume/batch/kafka-batch-server';
