import { Controller } from '@nestjs/common';
import { EventPattern } from '@nestjs/microservices';
import { IdempotentBatchConsumer, IdempotentConsumer, type IdempotentRunOptions, IdempotentRunner, Transactional } from 'nestjs-transactional-outbox';
import { describe, expect, it } from 'vitest';
import { startApp } from '../setup/app';

const INVALID = { code: 'OUTBOX_OPTIONS_INVALID' };

describe('two consumers on one handler, where the inner one would take every message for a repeat,', () => {
  const misplaced = expect.objectContaining({ code: 'OUTBOX_CONSUMER_MISPLACED' }) as unknown;

  it.each([
    ['of one kind', IdempotentConsumer('outer'), IdempotentConsumer('inner')],
    ['of two kinds', IdempotentConsumer('outer'), IdempotentBatchConsumer('inner')],
    ['of the other two kinds', IdempotentBatchConsumer('outer'), IdempotentConsumer('inner')],
  ])('are refused: %s', (_, outer, inner) => {
    expect(() => {
      @Controller()
      class TwiceController {
        @outer
        @EventPattern<string>('twice')
        @inner
        async handle(): Promise<void> {}
      }
      return TwiceController;
    }).toThrow(misplaced);
  });

  it('are refused on a controller, also when one is inherited', () => {
    @IdempotentConsumer('base')
    class Base {}
    expect(() => {
      @IdempotentConsumer('own')
      class Derived extends Base {}
      return Derived;
    }).toThrow(misplaced);
  });
});

describe('a handler with a transaction of its own', () => {
  it.each(['REQUIRES_NEW', 'NOT_SUPPORTED', 'NEVER'] as const)('is refused at boot: %s', async (propagation) => {
    @Controller()
    class ApartController {
      @EventPattern<string>('apart')
      @IdempotentConsumer('apart')
      @Transactional({ propagation })
      async handle(): Promise<void> {}
    }
    await expect(startApp('sqlite', { controllers: [ApartController] })).rejects.toMatchObject({
      code: 'OUTBOX_CONSUMER_MISPLACED',
      message: expect.stringContaining(propagation) as unknown,
    });
  });

  it('is let in where it joins', async () => {
    @Controller()
    class JoiningController {
      @EventPattern<string>('joining')
      @Transactional()
      @IdempotentConsumer('joining')
      async handle(): Promise<void> {}
    }
    const { close } = await startApp('sqlite', { controllers: [JoiningController] });
    await close();
  });
});

describe('options that make no sense', () => {
  const wrong = (options: object): (() => unknown) => () => IdempotentConsumer('wrong', options as object);

  it.each([
    ['unknown', { dedup: 'state' }],
    ['unknown for one message', { batchSize: 5 }],
    ['no list', { events: {} }],
    ['no function', { messageId: 'id' }],
    ['no function', { isRetryable: true }],
    ['no object', { retry: 3 }],
    ['an unknown place', { sequence: { of: () => 1, onstale: 'skip' } }],
    ['no topic', { deadLetterTopic: 5 }],
    ['no data source', { dataSource: 5 }],
  ])('are refused: %s', (_, options) => {
    expect(wrong(options)).toThrow(expect.objectContaining(INVALID) as Error);
  });

  // Nothing would ever be handled.
  it('are refused: a list of events without any, or with one that is not there yet in a circle of imports', () => {
    expect(wrong({ events: [] })).toThrow(expect.objectContaining(INVALID) as Error);
    expect(wrong({ events: [undefined] })).toThrow(expect.objectContaining({ code: 'OUTBOX_EVENT_NOT_DECORATED' }) as Error);
  });

  it('are refused: a name that is no text', () => {
    expect(() => IdempotentConsumer(undefined as unknown as string)).toThrow(expect.objectContaining(INVALID) as Error);
    expect(() => IdempotentConsumer(' ')).toThrow(expect.objectContaining(INVALID) as Error);
  });

  it('are refused by the function too, before anything is done', async () => {
    const { app, close } = await startApp('sqlite');
    const runner = app.get(IdempotentRunner);
    let calls = 0;
    const run = (options: object) => runner.run('wrong', 'm', async () => calls++, options as IdempotentRunOptions);
    for (const options of [{ dedupe: 'stat' }, { dedupe: 'state' }, { dedupe: 'redis' }, { isApplied: () => true }, { concurrentCopies: 'never' }]) {
      await expect(run(options), JSON.stringify(options)).rejects.toMatchObject(INVALID);
    }
    expect(calls).toBe(0);
    await close();
  });
});
