import type { KafkaOptions } from '@nestjs/microservices';
import { CompressionTypes } from 'kafkajs';
import { OutboxOptionsError } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { describe, expect, it } from 'vitest';

const brokers = ['localhost:9092'];

/** Checked by the compiler; running them shows that making a publisher touches no broker. */
describe('the options of kafkaPublisher', () => {
  it('take kafkajs’s own options, flat', () => {
    kafkaPublisher({ brokers });
    kafkaPublisher({
      clientId: 'orders',
      brokers: async () => brokers,
      ssl: { rejectUnauthorized: true },
      sasl: { mechanism: 'scram-sha-512', username: 'u', password: 'p' },
      connectionTimeout: 3_000,
      idempotent: true,
      compression: CompressionTypes.GZIP,
      maxRequestBytes: 500_000,
      producer: { allowAutoTopicCreation: true, metadataMaxAge: 60_000 },
    });
  });

  it('take the options of Nest’s Kafka client', () => {
    kafkaPublisher({ client: { brokers }, producer: { idempotent: true }, send: { compression: CompressionTypes.GZIP } });
    const nest: NonNullable<KafkaOptions['options']> & { client: { brokers: string[] } } = {
      client: { clientId: 'orders', brokers },
      consumer: { groupId: 'orders' },
      producer: { allowAutoTopicCreation: true },
      send: { acks: -1 },
    };
    kafkaPublisher(nest);
  });

  it('do not take what makes no sense', () => {
    // @ts-expect-error both forms at once
    expect(() => kafkaPublisher({ brokers, client: { brokers } })).not.toThrow();
    // @ts-expect-error no brokers
    expect(() => kafkaPublisher({ clientId: 'orders' })).toThrow(OutboxOptionsError);
    // @ts-expect-error a setting of the send, in the flat form
    kafkaPublisher({ brokers, send: { compression: CompressionTypes.GZIP } });
    // @ts-expect-error the outbox is not for Kafka's transactions
    kafkaPublisher({ brokers, producer: { transactionalId: 't' } });
    // @ts-expect-error not a codec
    kafkaPublisher({ brokers, compression: 'gzip' });
    expect(() => kafkaPublisher({ client: { brokers }, send: { acks: 1 } })).toThrow(/acks -1/);
    expect(() => kafkaPublisher({ brokers, maxRequestBytes: 0 })).toThrow(/maxRequestBytes/);
  });
});
