import { type KafkaOptions, Transport } from '@nestjs/microservices';
import { Partitioners } from 'kafkajs';
import { PATIENT } from '../../shop/src/create-topics.js';
import { TOPIC_PREFIX } from '../../shop/src/topics.js';

/** The Kafka side of the app, for `connectMicroservice`. */
export function kafkaServer(brokers: readonly string[]): KafkaOptions {
  return {
    transport: Transport.KAFKA,
    options: {
      client: { clientId: 'inventory', brokers: [...brokers], retry: PATIENT },
      consumer: { groupId: `${TOPIC_PREFIX}inventory` },
      // A group that is new begins with the oldest order, not with the next one.
      subscribe: { fromBeginning: true },
      run: { partitionsConsumedConcurrently: 3 },
      // Nest brings a producer for replies; naming the partitioner spares a warning of kafkajs.
      producer: { createPartitioner: Partitioners.DefaultPartitioner },
    },
  };
}
