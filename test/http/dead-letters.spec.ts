import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { OutboxAdmin } from 'nestjs-transactional-outbox';
import request from 'supertest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KafkaSide } from '../consume/kafka-side';
import { SERVERS } from '../setup/databases';
import { GUARDED, startHttp } from './http-app';

describe.each(SERVERS)('dead letters over HTTP with %s', (database) => {
  const side = new KafkaSide();
  const kafka = new Kafka({ clientId: 'operator', brokers: side.brokers, logLevel: logLevel.NOTHING });
  const origin = `given-up-${randomUUID().slice(0, 8)}`;
  const letters = `${origin}.dlt`;
  const id = randomUUID();
  let test: Awaited<ReturnType<typeof startHttp>>;

  beforeAll(async () => {
    await side.connect();
    await side.createTopics([origin, letters]);
    // As a consumer leaves them.
    const headers = { dlt_consumer: 'stock', dlt_reason: 'away', dlt_attempts: '3', dlt_topic: origin, dlt_partition: '0', dlt_offset: '7', event_type: 'order.created' };
    await side.send(letters, { key: 'k', value: '{"n":1}', headers: { ...headers, id, dlt_id: id } }, { key: 'k', value: 'x' });
    test = await startHttp(database, { ...GUARDED, kafka });
  });
  afterAll(async () => {
    await test?.close();
    await side.close();
  });

  const server = () => test.app.getHttpServer() as never;
  const get = (path: string, user = 'ben') => request(server()).get(`/outbox/${path}`).set('x-user', user);
  const replay = (body: object, user = 'ben') => request(server()).post(`/outbox/dead-letters/${letters}/replay`).set('x-user', user).send(body);

  it('are listed page by page, and replayed with who and why', async () => {
    const { body } = (await get(`dead-letters/${letters}?limit=1`).expect(200)) as { body: { letters: { offset: string }[]; next: string } };
    expect(body.letters).toMatchObject([{ partition: 0, offset: '0', consumer: 'stock', reason: 'away', attempts: 3, messageId: id, key: 'k', origin: { topic: origin, partition: 0, offset: '7' } }]);
    expect((await get(`dead-letters/${letters}?after=${encodeURIComponent(body.next)}`).expect(200)).body).toMatchObject({ letters: [{ offset: '1' }], next: null });
    const places = [0, 1, 99].map((offset) => ({ partition: 0, offset: String(offset) }));
    expect((await replay({ places, reason: 'mended' }).expect(200)).body).toEqual({ replayed: 1, notFound: [{ partition: 0, offset: '99' }], skipped: [{ partition: 0, offset: '1', why: 'no-origin' }] });
    const admin = test.app.get(OutboxAdmin);
    expect((await admin.find({ topic: origin })).messages).toMatchObject([{ messageId: id, key: 'k', state: 'pending' }]);
    expect((await admin.audit()).acts).toMatchObject([{ act: 'replay dead letters', by: 'ben', reason: 'mended', outcome: 'done', result: { replayed: 1 } }]);
  });

  it('are guarded as the rest, and refuse what cannot be meant', async () => {
    await request(server()).get(`/outbox/dead-letters/${letters}`).expect(401);
    const places = [{ partition: 0, offset: '0' }];
    await replay({ places, reason: 'x' }, 'guest').expect(403);
    await replay({ places, reason: 'x' }).set('sec-fetch-site', 'cross-site').expect(403);
    for (const body of [{ places }, { reason: 'x' }, { places: [], reason: 'x' }, { places: ['0@0'], reason: 'x' }, { places: [{ partition: -1, offset: '0' }], reason: 'x' }, { places: [{ partition: 0, offset: 'x' }], reason: 'x' }, { places, reason: 'x', by: 'anna' }]) {
      expect([body, (await replay(body)).status]).toEqual([body, 400]);
    }
    expect((await get(`dead-letters/${letters}?limit=0`)).status).toBe(400);
    expect((await get('dead-letters/no-such-topic')).body).toMatchObject({ statusCode: 400, code: 'OUTBOX_OPERATION_INVALID' });
    expect(Object.keys((await get('openapi.json')).body.paths as object)).toEqual(expect.arrayContaining(['/dead-letters/{topic}', '/dead-letters/{topic}/replay']));
  });
});
