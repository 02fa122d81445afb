import type { LoggerService } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { OutboxAdmin } from 'nestjs-transactional-outbox';
import { OutboxHttpModule } from 'nestjs-transactional-outbox/http';
import request from 'supertest';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { DatabaseName } from '../setup/databases';
import { fastify, type Platform, startHttp } from './http-app';

const RUNS: [Platform, DatabaseName][] = [
  ['express', 'sqlite'],
  ['express', 'mysql'],
  ['express', 'mariadb'],
  ['express', 'postgres'],
  ...(fastify ? [['fastify', 'sqlite'] as [Platform, DatabaseName]] : []),
];
const UNKNOWN = '019b0000-0000-7000-8000-000000000000';

describe.each(RUNS)('the operations over HTTP on %s with %s', (platform, database) => {
  let test: Awaited<ReturnType<typeof startHttp>>;
  const audit: object[] = [];
  const errors: unknown[] = [];
  const logger: LoggerService = { log: (line: object) => typeof line === 'object' && audit.push(line), warn: () => undefined, error: (line: unknown) => errors.push(line) };

  beforeAll(async () => {
    test = await startHttp(database, undefined, platform, { logger });
    await test.notes.transactions.run(() => test.notes.write(1));
    await test.notes.transactions.run(() => test.notes.write(2));
  });
  afterAll(() => test.close());

  const get = (path: string, user = 'ben') => request(test.app.getHttpServer() as never).get(`/outbox/${path}`).set('x-user', user);
  const post = (path: string, body: object, user = 'ben') => request(test.app.getHttpServer() as never).post(`/outbox/${path}`).set('x-user', user).send(body);
  const first = async (): Promise<{ id: string; messageId: string; state: string }> => ((await get('messages?limit=1')).body as { messages: [never] }).messages[0];

  it('lets in nobody whom the guard does not, and a guest look only', async () => {
    const server = test.app.getHttpServer() as never;
    for (const path of ['me', 'stats', 'queue', 'messages', 'messages/1', 'audit', 'openapi.json', 'dashboard', 'dashboard/app.js', '']) {
      await request(server).get(`/outbox${path === '' ? '' : '/'}${path}`).expect(401);
    }
    await request(server).post('/outbox/pause').send({ reason: 'x' }).expect(401);
    await get('stats', 'guest').expect(200);
    await post('pause', { reason: 'x' }, 'guest').expect(403);
    expect((await get('stats')).body).toMatchObject({ paused: false });
  });

  it('looks', async () => {
    expect((await get('me').expect(200)).body).toEqual({ by: 'ben', canReadContent: false });
    expect((await get('stats').expect(200)).body).toMatchObject({ pending: 2, held: 0, dead: 0, topics: [{ topic: 'notes', pending: 2 }], paused: false });
    const { head, lanes, laneCount } = (await get('queue').expect(200)).body as { head: string; lanes: { pending: number }[]; laneCount: number };
    expect([lanes.reduce((sum, { pending }) => sum + pending, 0), laneCount]).toEqual([2, 64]);
    expect((await get(`queue?since=${head}`)).body).toMatchObject({ added: 0 });
    expect((await get('queue?since=0')).body).toMatchObject({ added: 2 });
    const page = (await get('messages?topic=notes&state=pending&limit=1&from=2020-01-01T00:00:00Z').expect(200)).body as { messages: object[]; next: string };
    expect(page.messages).toMatchObject([{ topic: 'notes', type: 'note.written', state: 'pending', key: '1' }]);
    expect((await get(`messages?after=${page.next}`)).body).toMatchObject({ messages: [{ key: '2' }] });
  });

  it('shows what a message says to those who may read it', async () => {
    const { id, messageId } = await first();
    for (const name of [id, messageId]) expect((await get(`messages/${name}`).expect(200)).body).not.toHaveProperty('payload');
    await get(`messages/${id}?content=true`).expect(403);
    expect((await get(`messages/${id}?content=true`, 'anna').expect(200)).body).toMatchObject({ payload: '{"id":1}' });
    await get(`messages/${UNKNOWN}`).expect(404);
    await get('messages/%3Cscript%3E').expect(404);
  });

  it('acts, and writes down who and why', async () => {
    const { id, messageId } = await first();
    expect((await post('messages/discard', { ids: [messageId, '999999', UNKNOWN, 'odd'], reason: 'wrong' }).expect(200)).body).toEqual({
      done: 1,
      notFound: expect.arrayContaining(['999999', UNKNOWN, 'odd']) as unknown,
      skipped: [],
    });
    expect(audit.at(-1)).toMatchObject({ act: 'discard', by: 'ben', reason: 'wrong' });
    expect((await post('messages/requeue', { filter: { state: 'discarded', limit: 10 }, reason: 'right after all' }).expect(200)).body).toMatchObject({ done: 1 });
    expect((await post('messages/replay', { ids: [id], reason: 'x' }).expect(200)).body).toMatchObject({ done: 0, skipped: [{ id, state: 'pending' }] });
    await post('keys/block', { topic: 'notes', key: '1', reason: 'wait' }).expect(200);
    expect((await get('queue')).body).toMatchObject({ keys: [{ topic: 'notes', key: '1', state: 'stopped', retryAt: null }], moreKeys: false });
    expect((await post('keys/release', { topic: 'notes', key: '1', reason: 'go' }).expect(200)).body).toEqual({ done: true });
    expect((await post('keys/release', { topic: 'notes', key: '1', reason: 'go' }).expect(200)).body).toEqual({ done: false });
    await post('pause', { topic: 'notes', reason: 'x' }).expect(200);
    await post('pause', { reason: 'x' }).expect(200);
    expect((await get('stats')).body).toMatchObject({ paused: true, topics: [{ topic: 'notes', paused: true }] });
    await post('resume', { reason: 'x' }).expect(200);
    await post('resume', { topic: 'notes', reason: 'x' }).expect(200);
    expect((await post('purge', { reason: 'x', sent: 0 }).expect(200)).body).toMatchObject({ outcome: 'done' });
    const { acts, next } = (await get('audit?by=ben&limit=2').expect(200)).body as { acts: object[]; next: string };
    expect(acts).toMatchObject([{ act: 'purge', by: 'ben', reason: 'x', outcome: 'done' }, { act: 'resume', target: { topic: 'notes' } }]);
    expect((await get(`audit?before=${next}&act=pause`)).body).toMatchObject({ acts: [{ target: { relays: 'all' } }, { target: { topic: 'notes' } }], next: null });
    expect((await get(`audit?message=${id}&from=2020-01-01T00:00:00Z`)).body).toMatchObject({ acts: [{ act: 'requeue' }, { act: 'discard', reason: 'wrong' }] });
  });

  it.each([
    ['messages?state=parked'],
    ['messages?topics=notes'],
    ['messages?limit=0'],
    ['messages?limit=1001'],
    ['messages?from=yesterday'],
    ['messages?after=-1'],
    ['messages?topic=a&topic=b'],
    ['messages?key=%00'],
    ['audit?limit=0'],
    ['audit?who=ben'],
    ['audit?before=x'],
    ['queue?since=1%20OR%201=1'],
  ])('refuses to look for %s', async (path) => {
    const { body } = await get(path).expect(400);
    expect(body).toMatchObject({ statusCode: 400 });
  });

  it.each([
    ['messages/requeue', {}],
    ['messages/requeue', { reason: 'x' }],
    ['messages/requeue', { ids: ['1'] }],
    ['messages/requeue', { ids: ['1'], reason: ' ' }],
    ['messages/requeue', { ids: [], reason: 'x' }],
    ['messages/requeue', { ids: [1], reason: 'x' }],
    ['messages/requeue', { ids: '1', reason: 'x' }],
    ['messages/requeue', { filter: {}, reason: 'x' }],
    ['messages/requeue', { filter: { limit: 10_001 }, reason: 'x' }],
    ['messages/requeue', { filter: { limit: 1, state: 'sent' }, reason: 'x' }],
    ['messages/requeue', { filter: { limit: 1, topics: 'notes' }, reason: 'x' }],
    ['messages/requeue', { ids: ['1'], filter: { limit: 1 }, reason: 'x' }],
    ['messages/requeue', { ids: ['1'], reason: 'x', by: 'the director' }],
    ['messages/requeue', [{ ids: ['1'], reason: 'x' }]],
    ['keys/block', { topic: 'notes', reason: 'x' }],
    ['keys/block', { topic: 'no topic', key: '1', reason: 'x' }],
    ['pause', { topic: 7, reason: 'x' }],
    ['purge', { sent: -1, reason: 'x' }],
  ])('refuses %s of %j', async (path, body) => {
    await post(path, body).expect(400);
  });

  it('takes no writes from forms and from other sites', async () => {
    const server = test.app.getHttpServer() as never;
    const write = () => request(server).post('/outbox/pause').set('x-user', 'ben');
    for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
      await write().set('content-type', type).send('reason=x').expect(415);
    }
    await write().set('sec-fetch-site', 'cross-site').send({ reason: 'x' }).expect(403);
    await write().set('sec-fetch-site', 'same-site').send({ reason: 'x' }).expect(403);
    expect((await get('stats')).body).toMatchObject({ paused: false });
    await write().set('sec-fetch-site', 'same-origin').send({ topic: 'other', reason: 'x' }).expect(200);
    await post('resume', { topic: 'other', reason: 'x' });
  });

  it('says nothing of the inside when something fails, but to the log', async () => {
    vi.spyOn(test.app.get(OutboxAdmin), 'stats').mockRejectedValueOnce(new Error('connect 10.0.0.7:3306 with password hunter2'));
    const { body, headers } = await get('stats').expect(500);
    expect(body).toEqual({ statusCode: 500, message: 'Internal Server Error' });
    expect(headers['cache-control']).toBe('no-store');
    expect(JSON.stringify(errors)).toContain('hunter2');
  });

  it('describes itself: each operation and no other', async () => {
    const { body } = await get('openapi.json').expect(200);
    const { paths } = body as { paths: Record<string, object> };
    const described = Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).filter((name) => name !== 'parameters').map((method) => `${method} ${path}`));
    // What Nest serves, as its own module for OpenAPI finds it, where an app has that.
    const document = SwaggerModule.createDocument(test.app, new DocumentBuilder().build());
    const served = Object.entries(document.paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method} ${path.replace(/^\/outbox/, '')}`));
    expect(described.sort()).toEqual(served.filter((name) => !/dashboard|^get $/.test(name)).sort());
    // Every reference leads somewhere.
    const { schemas } = (body as { components: { schemas: object } }).components;
    for (const [, name] of JSON.stringify(body).matchAll(/#\/components\/schemas\/(\w+)/g)) expect(schemas).toHaveProperty(String(name));
  });
});

describe('OutboxHttpModule', () => {
  const failure = (options: object): string => {
    try {
      OutboxHttpModule.forRoot(options as never);
      return 'none';
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  const actor = () => 'x';
  const guard = { canActivate: () => true };

  it('refuses to start without a guard, and with options that it does not understand', () => {
    expect([failure({}), failure({ guard: [], actor }), failure({ allowAnonymous: false }), failure(undefined as never)]).toEqual(Array(4).fill('OUTBOX_HTTP_UNGUARDED'));
    for (const wrong of [{ guard }, { guard: 'x', actor }, { guard, actor, allowAnonymous: true }, { guard, actor, path: '../x' }, { guard, actor, path: ':id' }, { guard, actor, guards: [] }, { guard, actor, canReadContent: true }, { guard, actor, kafka: {} }]) {
      expect([wrong, failure(wrong)]).toEqual([wrong, 'OUTBOX_OPTIONS_INVALID']);
    }
    expect([failure({ guard, actor, path: '/internal/outbox/' }), failure({ allowAnonymous: true })]).toEqual(['none', 'none']);
  });

  it('stands where it is told to, for everybody when it is told so', async () => {
    const anonymous = await startHttp('sqlite', { allowAnonymous: true, path: 'internal/box', dashboard: false }, 'express', { prepare: (app) => app.setGlobalPrefix('api') });
    const server = anonymous.app.getHttpServer() as never;
    expect((await request(server).get('/api/internal/box/me').expect(200)).body).toEqual({ by: 'anonymous', canReadContent: false });
    await request(server).get('/api/internal/box/dashboard').expect(404);
    await anonymous.close();
  });

  it('does nothing for somebody whom the actor option does not know', async () => {
    const nameless = await startHttp('sqlite', { guard, actor: () => '' });
    await request(nameless.app.getHttpServer() as never).post('/outbox/pause').send({ reason: 'x' }).expect(403);
    await nameless.close();
  });
});
