import { randomUUID } from 'node:crypto';
import { Controller } from '@nestjs/common';
import { Ctx, EventPattern, type KafkaContext, Payload } from '@nestjs/microservices';
import { IdempotentConsumer } from 'nestjs-transactional-outbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ConsumerApp, drained, startConsumers } from './consumer-app';
import { KafkaSide } from './kafka-side';

// A3, A4, A5
describe('the id of a message', () => {
  const run = randomUUID().slice(0, 8);
  const topicOf = (name: string): string => `${name}-${run}`;
  const group = `ids-${run}`;
  const kafka = new KafkaSide();
  const got: unknown[] = [];
  let app: ConsumerApp;

  @Controller()
  class IdsController {
    @EventPattern<string>(topicOf('header'))
    @IdempotentConsumer('header')
    async header(@Payload() value: unknown): Promise<void> {
      got.push(value);
    }

    @EventPattern<string>(topicOf('offset'))
    @IdempotentConsumer('offset', { missingMessageId: 'offset' })
    async offset(@Ctx() context: KafkaContext): Promise<void> {
      got.push(context.getMessage().value);
    }

    @EventPattern<string>(topicOf('own'))
    @IdempotentConsumer('own', { messageId: (context) => context.switchToRpc().getData<{ ref?: string }>().ref })
    async own(@Payload() value: unknown, @Ctx() _context: KafkaContext): Promise<void> {
      got.push(value);
    }

    @EventPattern<string>(topicOf('none'))
    @IdempotentConsumer('none')
    async none(): Promise<void> {
      got.push('none');
    }
  }

  async function consumed(name: string): Promise<string[]> {
    await drained(kafka, group, topicOf(name));
    const rows = (await app.dataSource.query(
      `SELECT message_id FROM consumed_message WHERE consumer = '${name}' ORDER BY consumed_at, message_id`,
    )) as { message_id: string }[];
    return rows.map((row) => row.message_id);
  }
  async function letters(name: string) {
    return app.messages(`${topicOf(name)}.dlt`);
  }

  beforeAll(async () => {
    await kafka.connect();
    await kafka.createTopics(['header', 'offset', 'own', 'none'].map(topicOf));
    app = await startConsumers('postgres', { controllers: [IdsController], servers: [kafka.server(group)] });
  });
  afterAll(async () => {
    await app?.close();
    await kafka.close();
  });

  it('is the header "id", as text or bytes, and repeats are skipped', async () => {
    got.length = 0;
    await kafka.send(
      topicOf('header'),
      { value: 'a', headers: { id: 'one' } },
      { value: 'b', headers: { id: Buffer.from('one') } },
      { value: 'c', headers: { id: 'ONE' } },
      { value: 'd', headers: { id: 'one ' } },
      { value: 'e', headers: { id: 'x'.repeat(190) } },
    );
    expect(await consumed('header')).toHaveLength(4);
    expect(got).toEqual(['a', 'c', 'd', 'e']);
    expect(app.events.counts('header')).toMatchObject({ handled: 4, duplicate: 1 });
  });

  it.each([
    ['there are no headers', {}, 'OUTBOX_MESSAGE_ID_MISSING'],
    ['it is empty', { headers: { id: '' } }, 'OUTBOX_MESSAGE_ID_MISSING'],
    ['it is given twice', { headers: { id: ['p', 'q'] } }, 'OUTBOX_MESSAGE_ID_INVALID'],
    ['it is too long', { headers: { id: 'y'.repeat(191) } }, 'OUTBOX_MESSAGE_ID_INVALID'],
    ['it is not UTF-8', { headers: { id: Buffer.from([0x61, 0xff]) } }, 'OUTBOX_MESSAGE_ID_INVALID'],
    ['it is a JSON object', { headers: { id: '{"a":1}' } }, 'OUTBOX_MESSAGE_ID_INVALID'],
    ['it begins with a zero byte', { headers: { id: Buffer.from([0, 1]) } }, 'OUTBOX_MESSAGE_ID_INVALID'],
  ])('is refused, and the message not lost, when %s', async (_, message, code) => {
    got.length = 0;
    const value = randomUUID();
    await kafka.send(topicOf('header'), { value, key: 'k', ...message });
    const ids = await consumed('header');
    expect(got).toEqual([]);
    const letter = (await letters('header')).at(-1);
    expect(letter).toMatchObject({ payload: value, message_key: 'k', event_type: 'dead-letter', headers: { dlt_error: code } });
    // Recorded by its place, so that a redelivery makes no second dead letter.
    expect(ids).toContain(`${topicOf('header')}:0:${letter?.headers['dlt_offset']}`);
    expect(ids.filter((id) => /undefined|\[object|^$/.test(id))).toEqual([]);
  });

  it('can be the place in Kafka where it is missing, but not where it is bad', async () => {
    got.length = 0;
    const count = (await letters('offset')).length;
    await kafka.send(topicOf('offset'), { value: 'a' }, { value: 'b', headers: { id: '' } }, { value: 'c', headers: { id: 'own' } });
    expect((await consumed('offset')).toSorted()).toEqual(['own', `${topicOf('offset')}:0:0`, `${topicOf('offset')}:0:1`].toSorted());
    expect(got).toEqual(['a', 'b', 'c']);
    await kafka.send(topicOf('offset'), { value: 'd', headers: { id: ['p', 'q'] } });
    await drained(kafka, group, topicOf('offset'));
    expect(await letters('offset')).toHaveLength(count + 1);
  });

  it('can be taken from anywhere', async () => {
    got.length = 0;
    await kafka.send(topicOf('own'), { value: '{"ref":"r1"}' }, { value: '{"ref":"r1","again":true}' }, { value: '{}' });
    expect(await consumed('own')).toEqual(expect.arrayContaining(['r1']));
    expect(got).toEqual([{ ref: 'r1' }]);
    expect((await letters('own')).map(({ headers }) => headers['dlt_error'])).toEqual(['OUTBOX_MESSAGE_ID_MISSING']);
  });

  it('is all that is read: the value reaches the handler as it is', async () => {
    got.length = 0;
    const binary = Buffer.from([0x00, 0xff, 0xfe, 0x80]);
    await kafka.send(topicOf('header'), { value: binary, headers: { id: 'binary' } }, { value: binary, headers: { id: 'binary' } });
    await drained(kafka, group, topicOf('header'));
    expect(got).toEqual([binary]);
  });

  it('is found whatever parameters the handler has', async () => {
    got.length = 0;
    await kafka.send(topicOf('none'), { value: null, headers: { id: 'n' } }, { value: null, headers: { id: 'n' } });
    expect(await consumed('none')).toEqual(['n']);
    expect(got).toEqual(['none']);
  });
});
