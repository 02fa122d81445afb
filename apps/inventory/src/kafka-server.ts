import { type KafkaOptions, Transport } from '@nestjs/microservices';
import { TOPIC_PREFIX } from '../../shop/src/topics.js';

/** The Kafka side of the app, for `connectMicroservice`. */
export function kafkaServer(brokers: readonly string[]): KafkaOptions {
  return {
    transport: Transport.KAFKA,
    options: {
      client: {
        clientId: 'inventory',
        brokers: [...brokers],
        // An app that starts before its broker waits for it; HTTP answers meanwhile.
        retry: { retries: Number.MAX_SAFE_INTEGER, maxRetryTime: 5_000 },
      },
      consumer: { groupId: `${TOPIC_PREFIX}inventory` },
      // A group that is new begins with the oldest order, not with the next one.
      subscribe: { fromBeginning: true },
      run: { partitionsConsumedConcurrently: 3 },
    },
  };
}
