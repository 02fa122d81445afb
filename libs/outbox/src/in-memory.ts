export { InMemoryBroker } from './publish/in-memory/in-memory-broker';
export type {
  InMemoryBrokerOptions,
  InMemoryConsumer,
  InMemoryConsumerOptions,
  InMemoryRecord,
} from './publish/in-memory/in-memory-broker';
export { InMemoryServer } from './publish/in-memory/in-memory-server';
export type { InMemoryServerOptions } from './publish/in-memory/in-memory-server';
export type { InMemoryFault, InMemoryFaultEffect } from './publish/in-memory/faults';
export type { InMemoryTopicOptions, RecordToStore, StoredRecord } from './publish/in-memory/topic-log';
