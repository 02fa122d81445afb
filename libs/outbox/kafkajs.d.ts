export * from './dist/kafkajs';
