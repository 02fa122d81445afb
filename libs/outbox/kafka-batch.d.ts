export * from './dist/kafka-batch';
