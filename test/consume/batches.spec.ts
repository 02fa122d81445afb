import { randomUUID } from 'node:crypto';
import { Controller } from '@nestjs/common';
import { Ctx, EventPattern, type KafkaContext, MessagePattern, Payload } from '@nestjs/microservices';
import { InjectRepository } from '@nestjs/typeorm';
import { IsInt } from 'class-validator';
import {
  type BatchMessage,
  ConsumerEvents,
  IdempotentBatchConsumer,
  IdempotentConsumer,
  IdempotentRunner,
  Outbox,
  OutboxEvent,
  withMessageContext,
} from 'nestjs-transactional-outbox';
import { KafkaBatchServer } from 'nestjs-transactional-outbox/kafka-batch';
import { Repository } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { DATABASES, SERVERS } from '../setup/databases';
import { Note, NoteWritten } from '../setup/notes';
import { type ConsumerApp, drained, startConsumers } from './consumer-app';
import { KafkaSide } from './kafka-side';
import { until } from './until';

describe.each(DATABASES)('a batch for idempotent.runBatch on %s', (database) => {
  let app: TestApp;
  let runner: IdempotentRunner;
  let notes: Repository<Note>;
  let base = 0;

  beforeAll(async () => {
    app = await startApp(database, { entities: [Note], dataSource: { poolSize: 10 } });
    runner = app.app.get(IdempotentRunner);
    notes = app.dataSource.getRepository(Note);
  });
  afterAll(() => app?.close());
  beforeEach(() => {
    base += 10_000;
  });
  const messages = (...numbers: number[]) => numbers.map((n) => ({ messageId: `m${base + n}`, n: base + n }));
  const write = async (fresh: readonly { n: number }[]): Promise<void> => {
    await notes.insert(fresh.map(({ n }) => ({ id: n })));
    app.app.get(Outbox).emit(fresh.map(({ n }) => NoteWritten.of(n)));
  };
  const rows = async (): Promise<number[]> =>
    (await notes.find({ order: { id: 'ASC' } })).map(({ id }) => id - base).filter((n) => n >= 0);
  const emitted = async (): Promise<number> => (await app.logged()).filter((event) => (event as NoteWritten).id >= base).length;

  it('is handled without what was handled before, and without repeats of its own', async () => {
    const before = app.app.get(ConsumerEvents).counts('b');
    const first = await runner.runBatch('b', messages(1, 2, 1, 3), write);
    expect(first.fresh.map(({ n }) => n - base)).toEqual([1, 2, 3]);
    const second = await runner.runBatch('b', messages(3, 5, 2, 4), write);
    expect(second.fresh.map(({ n }) => n - base)).toEqual([5, 4]);
    expect(second.duplicates.map(({ n }) => n - base)).toEqual([3, 2]);
    expect(await runner.runBatch('b', messages(1, 5), () => Promise.reject(new Error('must not run')))).toMatchObject({ fresh: [] });
    expect(await runner.runBatch('b', [], () => Promise.reject(new Error('must not run')))).toEqual({ fresh: [], duplicates: [] });
    expect(await rows()).toEqual([1, 2, 3, 4, 5]);
    expect(await emitted()).toBe(5);
    expect(app.app.get(ConsumerEvents).counts('b')).toMatchObject({ handled: before.handled + 5, duplicate: before.duplicate + 5 });
    expect(await runner.run('b', `m${base + 4}`, () => Promise.reject(new Error('must not run')))).toEqual({ duplicate: true });
  });

  it('leaves nothing behind when its handler fails', async () => {
    const failing = runner.runBatch('b', messages(1, 2), async (fresh) => {
      await write(fresh);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect([await rows(), await emitted()]).toEqual([[], 0]);
    expect((await runner.runBatch('b', messages(1, 2), write)).fresh).toHaveLength(2);
  });

  it('may be larger than a statement', async () => {
    const many = messages(...Array.from({ length: 1700 }, (_, n) => n));
    const nothing = async (): Promise<void> => undefined;
    expect((await runner.runBatch('b', many, nothing)).fresh).toHaveLength(1700);
    expect((await runner.runBatch('b', many, nothing)).duplicates).toHaveLength(1700);
  });

  // F4
  it('is refused when an id is too long, and tells ids apart byte for byte', async () => {
    const long = [{ messageId: `${'x'.repeat(190)}y` }];
    await expect(runner.runBatch('b', long, async () => undefined)).rejects.toMatchObject({ code: 'OUTBOX_MESSAGE_ID_INVALID' });
    const ids = ['one', 'ONE', 'one ', 'öne'].map((id) => ({ messageId: `${base}${id}` }));
    expect((await runner.runBatch('b', ids, async () => undefined)).fresh).toHaveLength(4);
  });

  it('is handled once however many batches share messages at once, in whatever order', async () => {
    for (let round = 0; round < 5; round++) {
      const numbers = Array.from({ length: 40 }, (_, n) => round * 100 + n);
      const shuffled = () => messages(...numbers.map((n) => ({ n, at: Math.random() })).toSorted((a, b) => a.at - b.at).slice(0, 30).map(({ n }) => n));
      const outcomes = await Promise.all(
        Array.from({ length: 6 }, (_, i) =>
          runner.runBatch('b', shuffled(), async (fresh) => {
            await write(fresh);
            // Some roll back, so that others take over.
            if (i === 0) throw new Error('no');
          }).catch((error: Error) => {
            if (error.message !== 'no') throw error;
            return { fresh: [] };
          }),
        ),
      );
      const handled = outcomes.flatMap(({ fresh }) => fresh.map(({ n }) => n));
      expect(new Set(handled).size).toBe(handled.length);
      expect((await rows()).filter((n) => n >= round * 100).map((n) => n + base)).toEqual(handled.toSorted((a, b) => a - b));
    }
    expect(await emitted()).toBe((await rows()).length);
  });
});

@OutboxEvent({ type: 'note.sent', topic: 'notes' })
class NoteSent {
  @IsInt() id!: number;
}

describe.each(SERVERS)('a batch from Kafka on %s', (database) => {
  const run = randomUUID().slice(0, 8);
  const [topic, single, group] = [`batch-${run}`, `single-${run}`, `batch-${run}`];
  const kafka = new KafkaSide();
  const calls: number[][] = [];
  const singles: string[] = [];
  const faults = new Map<number, number>();
  let resume = (): void => undefined;
  let app: ConsumerApp;

  @Controller()
  class BatchController {
    constructor(
      @InjectRepository(Note) private readonly notes: Repository<Note>,
      private readonly outbox: Outbox,
    ) {}

    @IdempotentBatchConsumer('project', { events: [NoteSent], retry: { attempts: 4, attemptsPerDelivery: 2, backoff: 1 } })
    @EventPattern<string>(topic)
    async project(@Payload() events: NoteSent[], @Ctx() messages: BatchMessage[]): Promise<void> {
      calls.push(events.map(({ id }) => id));
      expect(events.every((event) => event instanceof NoteSent)).toBe(true);
      await this.notes.insert(events.map(({ id }) => ({ id })));
      for (const message of messages) {
        withMessageContext(message.context, () => this.outbox.emit(NoteWritten.of((message.payload as NoteSent).id)));
      }
      for (const { id } of events) {
        const left = faults.get(id) ?? 0;
        if (left > 0) {
          faults.set(id, left - 1);
          throw new Error(`no luck with ${id}`);
        }
      }
    }

    @EventPattern<string>(single)
    @IdempotentConsumer('single', { retry: { attempts: 2, attemptsPerDelivery: 1 } })
    async single(@Payload() value: string, @Ctx() context: KafkaContext): Promise<void> {
      singles.push(value);
      if (value === 'pause') {
        const partition = { topic: single, partitions: [0] };
        context.getConsumer().pause([partition]);
        resume = () => context.getConsumer().resume([partition]);
      }
      if (value === 'bad') throw new Error('no');
    }
  }

  beforeAll(async () => {
    await kafka.connect();
    await kafka.createTopics([topic, single]);
    const { options } = kafka.server(group);
    app = await startConsumers(database, { controllers: [BatchController], servers: [{ strategy: new KafkaBatchServer(options ?? {}) }] });
  });
  afterAll(async () => {
    await app?.close();
    await kafka.close();
  });
  beforeEach(() => {
    calls.length = 0;
  });
  const message = (id: number, value = JSON.stringify({ id })) => ({ value, headers: { id: `m${id}`, event_type: 'note.sent' } });

  it('is one call and one transaction, without repeats, unwanted and unreadable messages', async () => {
    await kafka.send(
      topic,
      ...Array.from({ length: 100 }, (_, id) => message(id + 1)),
      message(7),
      { value: '{}', headers: { id: 'other', event_type: 'note.lost' } },
      message(200, '{"id":"no number"}'),
      message(101),
    );
    await drained(kafka, group, topic);
    expect(calls).toEqual([Array.from({ length: 101 }, (_, id) => id + 1)]);
    expect(await app.count('note')).toBe(101);
    expect(app.events.counts('project')).toMatchObject({ handled: 101, duplicate: 1, ignored: 1, 'dead-lettered': 1, failed: 0 });
    expect((await app.messages(`${topic}.dlt`))[0]?.headers).toMatchObject({ dlt_id: 'm200', dlt_error: 'OUTBOX_EVENT_INVALID' });
    const emitted = await app.messages('notes');
    expect(emitted.map(({ causation_id }) => causation_id).toSorted()).toEqual(Array.from({ length: 101 }, (_, id) => `m${id + 1}`).toSorted());
  });

  it('is handled one by one when it fails: only the bad one is tried again and given up', async () => {
    faults.set(305, Number.POSITIVE_INFINITY);
    faults.set(308, 2);
    await kafka.send(topic, ...Array.from({ length: 10 }, (_, n) => message(301 + n)));
    await drained(kafka, group, topic);
    expect(await app.count('note', 'id BETWEEN 301 AND 310')).toBe(9);
    expect(await app.count('note', 'id = 305')).toBe(0);
    const letters = await app.messages(`${topic}.dlt`);
    expect(letters.at(-1)?.headers).toMatchObject({ dlt_id: 'm305', dlt_attempts: '4' });
    expect(letters).toHaveLength(2);
    expect(await app.count('outbox_message', `topic = 'notes' AND causation_id LIKE 'm30_'`)).toBe(8);
    expect(app.events.counts('project')).toMatchObject({ handled: 110, 'dead-lettered': 2 });
  });

  it('stands beside handlers of single messages', async () => {
    await kafka.send(single, ...['a', 'bad', 'b'].map((value) => ({ value, headers: { id: value } })));
    await drained(kafka, group, single);
    expect(singles).toEqual(['a', 'bad', 'bad', 'b']);
    expect(app.events.counts('single')).toMatchObject({ handled: 2, 'dead-lettered': 1 });
  });

  it('heeds a handler that pauses its partition', async () => {
    await kafka.send(single, ...['pause', 'later'].map((value) => ({ value, headers: { id: value } })));
    await until('it is paused', () => singles.includes('pause'));
    await kafka.send(topic, message(400));
    await drained(kafka, group, topic);
    expect(singles).not.toContain('later');
    resume();
    await drained(kafka, group, single);
    expect(singles.at(-1)).toBe('later');
  });

  it('needs a topic of its own in a server', async () => {
    @Controller()
    class Both {
      @EventPattern<string>(topic) @IdempotentBatchConsumer('one') async one(): Promise<void> {}
      @EventPattern<string>(topic) @IdempotentConsumer('two') async two(): Promise<void> {}
    }
    const { options } = kafka.server(`both-${run}`);
    const started = startConsumers('sqlite', { controllers: [Both], servers: [{ strategy: new KafkaBatchServer(options ?? {}) }] });
    await expect(started).rejects.toMatchObject({ code: 'OUTBOX_CONSUMER_MISPLACED' });
  });
});

describe('a batch handler', () => {
  it('gets messages one by one from a transport without batches', async () => {
    const got: unknown[] = [];
    @Controller()
    class NotesController {
      @EventPattern<string>('notes')
      @IdempotentBatchConsumer('notes', { events: [NoteSent] })
      async take(@Payload() events: NoteSent[], @Ctx() [message]: BatchMessage[]): Promise<void> {
        got.push(events, message?.messageId);
      }
    }
    const app = await startApp('sqlite', { controllers: [NotesController] });
    try {
      app.app.connectMicroservice({ strategy: app.broker.server({ groupId: 'g' }) });
      await app.app.startAllMicroservices();
      for (const id of ['a', 'b', 'a']) app.broker.produce('notes', { key: 'k', value: '{"id":1}', headers: { id, event_type: 'note.sent' } });
      await app.broker.idle();
      expect(got).toEqual([[{ id: 1 }], 'a', [{ id: 1 }], 'b']);
      expect(app.app.get(ConsumerEvents).counts('notes')).toMatchObject({ handled: 2, duplicate: 1 });
    } finally {
      await app.close();
    }
  });

  it('is refused where it makes no sense', async () => {
    @Controller()
    class Asked {
      @MessagePattern('ask') @IdempotentBatchConsumer('asked') async ask(): Promise<void> {}
    }
    await expect(startApp('sqlite', { controllers: [Asked] })).rejects.toMatchObject({ code: 'OUTBOX_CONSUMER_MISPLACED' });
    expect(() => IdempotentBatchConsumer('b', { batchSize: 0 })).toThrow(/batchSize/);
    expect(() => IdempotentBatchConsumer('b', { dedupe: 'redis' } as object)).toThrow(/dedupe and sequence/);
  });
});
