import { randomUUID } from 'node:crypto';
import { Catch, Controller, type ExceptionFilter, UseFilters } from '@nestjs/common';
import { Ctx, EventPattern, type KafkaContext, Payload } from '@nestjs/microservices';
import { IdempotentBatchConsumer, IdempotentConsumer } from 'nestjs-transactional-outbox';
import { KafkaBatchServer } from 'nestjs-transactional-outbox/kafka-batch';
import { EMPTY, type Observable, of, throwError } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ConsumerApp, drained, startConsumers } from './consumer-app';
import { KafkaSide } from './kafka-side';

/** Lets the Kafka client see what was thrown, which Nest by itself hides. */
@Catch()
class PassOn implements ExceptionFilter {
  catch(error: unknown): Observable<never> {
    return throwError(() => error);
  }
}

/** What code throws that is no error as one expects it, and what the dead letter says of it. */
const THROWN: readonly (readonly [name: string, thrown: unknown, reason: string])[] = [
  ['undefined', undefined, 'undefined'],
  ['null', null, 'null'],
  ['a text', 'out of stock', 'out of stock'],
  ['an empty text', '', ''],
  ['a symbol', Symbol('odd'), 'Symbol(odd)'],
  ['what a client of Nest rejects with', { status: 'error', message: 'no such product' }, 'no such product'],
  ['an object', { code: 17 }, '{"code":17}'],
  ['an object without a prototype', Object.assign(Object.create(null) as object, { code: 18 }), '{"code":18}'],
  ['an object that has no text', { toString: () => { throw new Error('no text'); }, toJSON: () => { throw new Error('no JSON'); } }, 'object'],
  ['an error whose message is no text', Object.assign(new Error('x'), { message: { a: 1 }, stack: 5 }), '{"a":1}'],
];

/** As one that looks into what was thrown, and finds nothing there. */
const throwing = (): never => {
  throw new TypeError('cannot read properties of undefined');
};

describe.each([false, true])('a handler that fails oddly, in batches: %s', (isBatch) => {
  const run = randomUUID().slice(0, 8);
  const [topic, group] = [`odd-${run}`, `odd-${run}`];
  const kafka = new KafkaSide();
  let app: ConsumerApp;

  @Controller()
  @UseFilters(PassOn)
  class OddController {
    @EventPattern<string>(topic)
    @IdempotentConsumer('odd', { retry: { attempts: 2, attemptsPerDelivery: 1, backoff: 1 }, isRetryable: throwing })
    async fail(@Payload() index: string): Promise<void> {
      throw THROWN[Number(index)]?.[1];
    }
  }

  @Controller()
  @UseFilters(PassOn)
  class OddBatchController {
    @EventPattern<string>(topic)
    @IdempotentBatchConsumer('odd', { retry: { attempts: 2, attemptsPerDelivery: 1, backoff: 1 }, isRetryable: throwing })
    async fail(@Payload() [index]: string[]): Promise<void> {
      throw THROWN[Number(index)]?.[1];
    }
  }

  beforeAll(async () => {
    await kafka.connect();
    await kafka.createTopics([topic]);
    const server = kafka.server(group);
    app = await startConsumers('sqlite', {
      controllers: [isBatch ? OddBatchController : OddController],
      servers: [isBatch ? { strategy: new KafkaBatchServer(server.options ?? {}) } : server],
    });
  });
  afterAll(async () => {
    await app?.close();
    await kafka.close();
  });

  // A9
  it('does not stop the consumer, is given up after its attempts, and says what it was', async () => {
    await kafka.send(topic, ...THROWN.map((_, index) => ({ value: String(index), headers: { id: `odd-${index}` } })));
    await drained(kafka, group, topic);
    const letters = await app.messages(`${topic}.dlt`);
    expect(letters.map(({ headers }) => [headers['dlt_id'], headers['dlt_reason'], headers['dlt_attempts']])).toEqual(
      THROWN.map(([, , reason], index) => [`odd-${index}`, reason, '2']),
    );
  });
});

describe('a handler that answers with a stream', () => {
  const run = randomUUID().slice(0, 8);
  const topicOf = (name: string): string => `${name}-${run}`;
  const group = `streams-${run}`;
  const kafka = new KafkaSide();
  let app: ConsumerApp;

  @Controller()
  class StreamController {
    @EventPattern<string>(topicOf('stream'))
    @IdempotentConsumer('stream', { retry: { attempts: 1 } })
    handle(@Payload() what: string, @Ctx() _context: KafkaContext): Observable<unknown> {
      if (what === 'many') return of(1, 2, 3);
      return what === 'empty' ? EMPTY : throwError(() => new Error('the stream broke'));
    }
  }

  beforeAll(async () => {
    await kafka.connect();
    await kafka.createTopics([topicOf('stream')]);
    app = await startConsumers('sqlite', { controllers: [StreamController], servers: [kafka.server(group)] });
  });
  afterAll(async () => {
    await app?.close();
    await kafka.close();
  });

  it('has done its work when the stream ends, and has failed when that fails', async () => {
    await kafka.send(topicOf('stream'), ...['many', 'empty', 'broken', 'many'].map((value, i) => ({ value, headers: { id: `${i}` } })));
    await drained(kafka, group, topicOf('stream'));
    expect(app.events.counts('stream')).toMatchObject({ handled: 3, 'dead-lettered': 1 });
    expect((await app.messages(`${topicOf('stream')}.dlt`)).map(({ headers }) => headers['dlt_reason'])).toEqual(['the stream broke']);
  });
});
