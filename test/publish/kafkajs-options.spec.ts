import type { KafkaOptions } from '@nestjs/microservices';
import { CompressionCodecs, CompressionTypes } from 'kafkajs';
import { OutboxOptionsError } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { describe, expect, it } from 'vitest';

const brokers = ['localhost:9092'];
/** As it may come from JavaScript. */
const untyped = kafkaPublisher as (options: unknown) => unknown;

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
    const nest: NonNullable<KafkaOptions['options']> = {
      client: { clientId: 'orders', brokers, retry: { retries: 3 } },
      consumer: { groupId: 'orders' },
      producer: { allowAutoTopicCreation: true, retry: { retries: 3 } },
      send: { acks: -1, timeout: 5_000 },
      subscribe: { fromBeginning: true },
      run: { partitionsConsumedConcurrently: 3 },
      parser: { keepBinary: true },
      postfixId: '',
      producerOnlyMode: true,
    };
    kafkaPublisher(nest);
    kafkaPublisher({ ...nest, idempotent: true });
  });

  it.each([
    [undefined, /needs options/],
    [{ clientId: 'orders' }, /brokers/],
    [{ brokers: [] }, /brokers/],
    [{ brokers: 'localhost:9092' }, /brokers/],
    [{ brokers: [undefined] }, /brokers/],
    [{ client: {} }, /brokers/],
    [{ brokers, client: { brokers } }, /does not take brokers/],
    [{ brokers, idempotant: true }, /idempotant.*idempotent/],
    [{ brokers, idempotent: 'yes' }, /idempotent/],
    [{ brokers, send: {} }, /send/],
    [{ client: { brokers }, maxBytes: 1 }, /maxBytes/],
    [{ brokers, compression: 'gzip' }, /gzip/],
    [{ brokers, producer: { transactionalId: 't' } }, /producer\.transactionalId/],
    [{ client: { brokers }, send: { acks: 1 } }, /acks -1/],
    [{ brokers, maxRequestBytes: 0 }, /maxRequestBytes/],
  ])('do not take %o', (options, what) => {
    expect(() => untyped(options)).toThrow(OutboxOptionsError);
    expect(() => untyped(options)).toThrow(what);
  });

  it('keep the relay from starting when kafkajs has no codec for the compression', async () => {
    const create = () => kafkaPublisher({ brokers, compression: CompressionTypes.Snappy });
    await expect(create().prepare?.()).rejects.toMatchObject({ code: 'OUTBOX_OPTIONS_INVALID', message: expect.stringContaining('Snappy'), retryable: false });
    const codecs: Record<number, unknown> = CompressionCodecs;
    const missing = codecs[CompressionTypes.Snappy];
    const later = create();
    codecs[CompressionTypes.Snappy] = () => ({});
    try {
      await later.prepare?.();
    } finally {
      codecs[CompressionTypes.Snappy] = missing;
    }
    await kafkaPublisher({ brokers, compression: CompressionTypes.GZIP }).prepare?.();
  });

  it('do not compile either', () => {
    // @ts-expect-error both forms at once
    expect(() => kafkaPublisher({ brokers, client: { brokers } })).toThrow(OutboxOptionsError);
    // @ts-expect-error no brokers
    expect(() => kafkaPublisher({ clientId: 'orders' })).toThrow(OutboxOptionsError);
    // @ts-expect-error a setting of the send, in the flat form
    expect(() => kafkaPublisher({ brokers, send: { compression: CompressionTypes.GZIP } })).toThrow(OutboxOptionsError);
    // @ts-expect-error the outbox is not for Kafka's transactions
    expect(() => kafkaPublisher({ brokers, producer: { transactionalId: 't' } })).toThrow(OutboxOptionsError);
    // @ts-expect-error not a codec
    expect(() => kafkaPublisher({ brokers, compression: 'gzip' })).toThrow(OutboxOptionsError);
  });
});
