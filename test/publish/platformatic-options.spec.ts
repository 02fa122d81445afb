import { OutboxOptionsError } from 'nestjs-transactional-outbox';
import { platformaticPublisher } from 'nestjs-transactional-outbox/platformatic';
import { describe, expect, it } from 'vitest';

const given = { clientId: 'orders', bootstrapBrokers: ['localhost:9092'] };
/** As it may come from JavaScript. */
const untyped = platformaticPublisher as (options: unknown) => unknown;

/** Checked by the compiler too; running it shows that making a publisher touches no broker. */
describe('the options of platformaticPublisher', () => {
  it('take the client’s own', () => {
    platformaticPublisher(given);
    platformaticPublisher({ ...given, bootstrapBrokers: [{ host: 'localhost', port: 9092 }] });
    platformaticPublisher({
      ...given,
      tls: { rejectUnauthorized: true },
      sasl: { mechanism: 'SCRAM-SHA-512', username: 'u', password: async () => 'p' },
      connectTimeout: 3_000,
      metadataMaxAge: 60_000,
      idempotent: true,
      compression: 'gzip',
      maxRequestBytes: 500_000,
    });
  });

  it.each([
    [undefined, /needs options/],
    [{}, /clientId/],
    [{ clientId: 'orders' }, /bootstrapBrokers/],
    [{ ...given, bootstrapBrokers: [] }, /bootstrapBrokers/],
    [{ ...given, bootstrapBrokers: 'localhost:9092' }, /bootstrapBrokers/],
    [{ ...given, bootstrapBrokers: [undefined] }, /bootstrapBrokers/],
    [{ ...given, bootstrapBrokers: [{ host: 'localhost' }] }, /bootstrapBrokers/],
    [{ ...given, compression: 'brotli' }, /brotli/],
    [{ ...given, idempotent: 'yes' }, /idempotent/],
    [{ ...given, requestTimeout: 0 }, /requestTimeout/],
    [{ ...given, maxRequestBytes: -1 }, /maxRequestBytes/],
    [{ ...given, sasl: { mechanism: 'plain' } }, /mechanism plain/],
    [{ ...given, topics: [{ topic: 'a', partitions: 0 }] }, /partitions/],
    // What would undo a promise, or is a slip of the pen.
    [{ ...given, retries: 5 }, /retries/],
    [{ ...given, acks: 1 }, /acks/],
    [{ ...given, autocreateTopics: true }, /autocreateTopics/],
  ])('do not take %o', (options, what) => {
    expect(() => untyped(options)).toThrow(OutboxOptionsError);
    expect(() => untyped(options)).toThrow(what);
  });

  it('do not compile either', () => {
    // @ts-expect-error the client must not try again by itself
    expect(() => platformaticPublisher({ ...given, retries: 5 })).toThrow(OutboxOptionsError);
    // @ts-expect-error not a codec
    expect(() => platformaticPublisher({ ...given, compression: 'brotli' })).toThrow(OutboxOptionsError);
  });
});
