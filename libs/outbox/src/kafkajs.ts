export { kafkaPublisher } from './publish/kafkajs/kafka-publisher';
export type {
  KafkaFlatOptions,
  KafkaNestOptions,
  KafkaProducerOptions,
  KafkaPublisherOptions,
  KafkaPublisherSettings,
} from './publish/kafkajs/options';
