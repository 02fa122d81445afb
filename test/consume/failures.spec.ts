import { randomUUID } from 'node:crypto';
import { Catch, Controller, type ExceptionFilter, UseFilters } from '@nestjs/common';
import { Ctx, EventPattern, type KafkaContext, Payload } from '@nestjs/microservices';
import { InjectRepository } from '@nestjs/typeorm';
import { IdempotentConsumer, Outbox } from 'nestjs-transactional-outbox';
import { type Observable, throwError } from 'rxjs';
import { Repository } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DATABASES } from '../setup/databases';
import { Note, NoteWritten } from '../setup/notes';
import { type ConsumerApp, drained, startConsumers } from './consumer-app';
import { KafkaSide } from './kafka-side';
import { until } from './until';

class PermanentError extends Error {
  readonly retryable = false;
}

/** Nest hides errors from the Kafka client; apps have filters that do not. */
@Catch()
class PassOn implements ExceptionFilter {
  catch(error: unknown): Observable<never> {
    return throwError(() => error);
  }
}

/** A fault that goes away by itself, and one that never does. */
type Fault = { readonly times: number; readonly error: () => unknown };

describe.each(DATABASES)('a failing handler on %s', (database) => {
  const run = randomUUID().slice(0, 8);
  const topicOf = (name: string): string => `${name}-${run}`;
  const topics = ['note', 'stop', 'skip', 'restart'].map(topicOf);
  const [group, restartGroup] = [`failures-${run}`, `restart-${run}`];
  const faults = new Map<string, Fault>();
  const calls = new Map<string, number>();
  const kafka = new KafkaSide();
  let app: ConsumerApp;

  @Controller()
  @UseFilters(PassOn)
  class NotesController {
    constructor(
      @InjectRepository(Note) private readonly notes: Repository<Note>,
      private readonly outbox: Outbox,
    ) {}

    @EventPattern<string>(topicOf('note'))
    @IdempotentConsumer('note', { retry: { attempts: 4, attemptsPerDelivery: 2, backoff: 10 } })
    note(@Payload() value: unknown, @Ctx() context: KafkaContext): Promise<void> {
      return this.write(value, context);
    }

    @EventPattern<string>(topicOf('stop'))
    @IdempotentConsumer('stop', { onExhausted: 'stop', retry: { attempts: 2, attemptsPerDelivery: 2, backoff: 1 } })
    stop(@Payload() value: unknown, @Ctx() context: KafkaContext): Promise<void> {
      return this.write(value, context);
    }

    @EventPattern<string>(topicOf('skip'))
    @IdempotentConsumer('skip', { onExhausted: 'skip', retry: { attempts: 1 } })
    skip(@Payload() value: unknown, @Ctx() context: KafkaContext): Promise<void> {
      return this.write(value, context);
    }

    /** Writes first and fails then, so that what stays after a failure would be seen. */
    private async write(value: unknown, context: KafkaContext): Promise<void> {
      const id = String(context.getMessage().headers?.['id']);
      const call = (calls.get(id) ?? 0) + 1;
      calls.set(id, call);
      await this.notes.insert({ id: Number(value) });
      this.outbox.emit(NoteWritten.of(Number(value)));
      const fault = faults.get(id);
      if (fault && call <= fault.times) throw fault.error();
    }
  }

  let nextNote = 1;
  /** Sends a message that a handler fails on so many times. */
  async function send(name: string, times = 0, error: () => unknown = () => new Error('no luck')) {
    const [id, note] = [randomUUID(), nextNote++];
    faults.set(id, { times, error });
    await kafka.send(topicOf(name), { key: `k${note}`, value: String(note), headers: { id, event_type: 'note.sent', mine: 'kept' } });
    return { id, note };
  }
  const isDone = (name: string): Promise<void> => drained(kafka, group, topicOf(name));

  beforeAll(async () => {
    await kafka.connect();
    await kafka.createTopics(topics);
    app = await startConsumers(database, { controllers: [NotesController], servers: [kafka.server(group)] });
  });
  afterAll(async () => {
    await app?.close();
    await kafka.close();
  });

  // A1
  it('is tried again and acts once', async () => {
    const { id, note } = await send('note', 1);
    await isDone('note');
    expect(calls.get(id)).toBe(2);
    expect(await app.count('note', `id = ${note}`)).toBe(1);
    expect(await app.count('consumed_message', `message_id = '${id}'`)).toBe(1);
    expect((await app.logged()).filter((event) => (event as NoteWritten).id === note)).toHaveLength(1);
    // The count of failures has gone with the success.
    expect(await app.count('consumed_failure', `message_id = '${id}'`)).toBe(0);
  });

  it('gets the message back from Kafka when it fails too often in place', async () => {
    const { id, note } = await send('note', 3);
    await isDone('note');
    expect(calls.get(id)).toBe(4);
    expect(await app.count('note', `id = ${note}`)).toBe(1);
    expect(await app.messages(`${topicOf('note')}.dlt`)).toEqual([]);
  });

  // A9
  it('hands the message over to the dead-letter topic in the end, and the next one is handled', async () => {
    const bad = await send('note', Number.POSITIVE_INFINITY, () => new Error(`no\u0000t ever ${'x'.repeat(3000)}`));
    const good = await send('note');
    await isDone('note');
    expect(calls.get(bad.id)).toBe(4);
    expect(await app.count('note', `id IN (${bad.note}, ${good.note})`)).toBe(1);
    expect(await app.count('consumed_message', `message_id IN ('${bad.id}', '${good.id}')`)).toBe(2);
    expect(await app.count('consumed_failure')).toBe(0);
    const letters = await app.messages(`${topicOf('note')}.dlt`);
    expect(letters).toHaveLength(1);
    expect(letters[0]).toMatchObject({
      message_key: `k${bad.note}`,
      payload: String(bad.note),
      event_type: 'note.sent',
      headers: {
        mine: 'kept',
        dlt_id: bad.id,
        dlt_consumer: 'note',
        dlt_error: 'Error',
        dlt_attempts: '4',
        dlt_topic: topicOf('note'),
        dlt_partition: '0',
        dlt_offset: expect.stringMatching(/^\d+$/),
        dlt_stack: expect.stringContaining('failures.spec'),
      },
    });
    expect(letters[0]?.headers['dlt_reason']).toHaveLength(1000);
    expect(letters[0]?.headers['dlt_reason']).toContain('no\ufffdt ever');
  });

  it('that cannot succeed later is not tried again', async () => {
    const { id } = await send('note', Number.POSITIVE_INFINITY, () => new PermanentError('never'));
    await isDone('note');
    expect(calls.get(id)).toBe(1);
    expect((await app.messages(`${topicOf('note')}.dlt`)).at(-1)?.headers).toMatchObject({ dlt_id: id, dlt_attempts: '1' });
  });

  it.each(['TypeError', 'RangeError', 'ReferenceError', 'SyntaxError', 'KafkaJSNoBrokerAvailableError'])('with a %s does not stop the consumer', async (name) => {
    const { id, note } = await send('note', 3, () => Object.assign(new Error('a mistake'), { name, retriable: false }));
    await isDone('note');
    expect(calls.get(id)).toBe(4);
    expect(await app.count('note', `id = ${note}`)).toBe(1);
  });

  it('can be passed over', async () => {
    const bad = await send('skip', Number.POSITIVE_INFINITY);
    const good = await send('skip');
    await isDone('skip');
    expect(await app.count('note', `id IN (${bad.note}, ${good.note})`)).toBe(1);
    expect(await app.count('consumed_message', `message_id = '${bad.id}'`)).toBe(1);
    expect(await app.messages(`${topicOf('skip')}.dlt`)).toEqual([]);
    expect(app.events.counts('skip')).toMatchObject({ skipped: 1, handled: 1, 'dead-lettered': 0 });
  });

  it('can stop its partition, and only that', async () => {
    const bad = await send('stop', Number.POSITIVE_INFINITY);
    const next = await send('stop');
    await app.reached('stop', 'stopped');
    const elsewhere = await send('note');
    await isDone('note');
    expect(await app.count('note', `id = ${elsewhere.note}`)).toBe(1);
    expect(await app.count('note', `id IN (${bad.note}, ${next.note})`)).toBe(0);
    expect(await app.count('consumed_message', `message_id = '${bad.id}'`)).toBe(0);
    expect(await kafka.isDone(group, topicOf('stop'))).toBe(false);
  });

  it('counts its attempts across restarts', async () => {
    @Controller()
    class RestartController {
      @EventPattern<string>(topicOf('restart'))
      @IdempotentConsumer('restart', { retry: { attempts: 3, attemptsPerDelivery: 1 } })
      async fail(): Promise<void> {
        attempts++;
        throw new Error('again');
      }
    }
    let attempts = 0;
    // Two attempts were made before this process started.
    const id = randomUUID();
    const now = database === 'sqlite' ? `'2026-01-01'` : 'CURRENT_TIMESTAMP';
    await kafka.send(topicOf('restart'), { value: 'x', headers: { id } });
    const other = await startConsumers(database, {
      controllers: [RestartController],
      servers: [],
    });
    try {
      await other.dataSource.query(
        `INSERT INTO consumed_failure (consumer, message_id, attempts, updated_at) VALUES ('restart', '${id}', 2, ${now})`,
      );
      other.app.connectMicroservice(kafka.server(restartGroup));
      await other.app.startAllMicroservices();
      await drained(kafka, restartGroup, topicOf('restart'));
      expect(attempts).toBe(1);
      expect((await other.messages(`${topicOf('restart')}.dlt`))[0]?.headers).toMatchObject({ dlt_attempts: '3' });
      await until('the dead letter is told', () => other.seen.some(({ kind }) => kind === 'dead-lettered'));
    } finally {
      await other.close();
    }
  });
});
