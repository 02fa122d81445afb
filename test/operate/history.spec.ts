import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import request from 'supertest';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../../libs/outbox/src/cli/program';
import { Cleaner } from '../../libs/outbox/src/operate/cleaner';
import type { Target } from '../../libs/outbox/src/operate/act-batches';
import { type ActResult, OutboxAdmin } from '../../libs/outbox/src/operate/outbox-admin';
import { DEFAULT_RETENTION } from '../../libs/outbox/src/operate/retention-options';
import { PooledClaimSessions } from '../../libs/outbox/src/relay/claim-sessions';
import type { FoundMessage, MessageFilter, MessagePage } from '../../libs/outbox/src/store/look';
import { startHttp } from '../http/http-app';
import { SERVERS } from '../setup/databases';
import { fillHistory, HISTORY, refreshStatistics } from '../store/bulk';
import { message, NOTHING, StoreFixture } from '../store/fixture';
import { openClaimSession } from '../store/sessions';
import { BY } from './fixture';
import { ReadCounter } from './read-counter';

/** A million where there is time. */
const ROWS = Number(process.env['OUTBOX_TEST_ROWS'] ?? 200_000);
const DEAD = ROWS / 20;
/** As many as are looked at by topic. */
const PENDING = 10_000;
const HELD = 1000;
/** What a page may read: it counts 10,000 rows, which MySQL reads again from its list, and looks at each once or twice. */
const PAGE = 4 * 10_000 + 5000;
/** What any look may read: a page, or what waits. */
const LOOK = PAGE + 5 * (PENDING + DEAD);
/** What a transaction of an act may read for each of its messages, and besides. */
const [EACH, BESIDES] = [20, 5000];
const BATCH = 500;
const LATE = String(ROWS - 25_000);

const numbers = (from: number, to: number, fits: (n: number) => boolean): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i).filter(fits).map(String);
const idsOf = ({ messages }: Pick<MessagePage, 'messages'>): string[] => messages.map(({ id }) => id);

describe.each(SERVERS)(`an operator on %s, with ${ROWS} rows of history`, { timeout: 180_000 }, (database) => {
  let f: StoreFixture;
  let counter: ReadCounter;
  let admin: OutboxAdmin;

  beforeAll(async () => {
    f = await StoreFixture.open(database, 64, { extra: { poolSize: 1 } });
    await fillHistory(f, ROWS, DEAD);
    // What waits comes last: some of it is held, behind the first of its key.
    for (const [state, length] of [['held', HELD], ['pending', PENDING]] as const) {
      await f.add(...Array.from({ length }, (_, n) => message({ topic: state, key: `k${n % 500}` })));
      if (state === 'held') await refuseAll();
    }
    await refreshStatistics(f);
    counter = await ReadCounter.open(f.dataSource.options, f.dataSource);
    const { store } = f;
    const open = () => counter.counted(new PooledClaimSessions(store, counter.dataSource.options, { workers: 1, sessionTimeout: 30_000 }));
    admin = new OutboxAdmin(counter.dataSource, store, open, new Cleaner(store, open, { ...DEFAULT_RETENTION, pause: 0 }), () => undefined);
  });
  afterAll(async () => {
    await admin.close();
    await counter.dataSource.destroy();
    await f.close();
  });

  /** The broker refuses the first of each key. */
  async function refuseAll(): Promise<void> {
    const elsewhere = await new DataSource(f.dataSource.options).initialize();
    const session = await openClaimSession(f.store, elsewhere);
    const claim = await session.claim({ lanes: f.store.lanes, rows: 100 * HELD, bytes: 100_000_000 });
    await session.settle({ ...NOTHING, retried: (claim?.messages ?? []).map((each) => ({ message: each, error: 'no', delayMs: 3_600_000 })) });
    await session.close();
    await elsewhere.destroy();
  }

  /** All pages, each of which has read no more than a page may. */
  async function all(filter: MessageFilter, begin = '0'): Promise<{ messages: FoundMessage[] }> {
    const messages: FoundMessage[] = [];
    for (let after: string | null = begin; after !== null; ) {
      const from: string = after;
      const { result, reads } = await counter.during(() => admin.find(filter, { after: from, limit: 1000 }));
      expect(reads, `${JSON.stringify(filter)} behind ${from}`).toBeLessThanOrEqual(PAGE);
      messages.push(...result.messages);
      after = result.next;
    }
    return { messages };
  }

  it('finds what is asked for, and no page reads more than 10,000 rows', async () => {
    const cases: [MessageFilter, (n: number) => boolean][] = [
      [{ topic: 'bills', state: 'sent' }, (n) => n <= ROWS - DEAD && HISTORY.topic(n) === 'bills'],
      [{ key: 'k77', type: 't3' }, (n) => HISTORY.key(n) === 'k77' && HISTORY.type(n) === 't3'],
      [{ topic: 'bills', state: 'dead' }, (n) => n > ROWS - DEAD && HISTORY.topic(n) === 'bills'],
      [{ state: 'dead', type: 't6' }, (n) => n > ROWS - DEAD && HISTORY.type(n) === 't6'],
    ];
    for (const [filter, fits] of cases) expect(idsOf(await all(filter)), JSON.stringify(filter)).toEqual(numbers(1, ROWS, fits));
    const [row] = await f.query<{ ms: string }>(`SELECT ${f.store.dialect.epochMs('created_at')} AS ms FROM ${f.tables.message} WHERE id = ${ROWS - 20_000}`);
    const at = Number(row?.ms);
    // A second each.
    expect(idsOf(await all({ from: new Date(at), to: new Date(at + 10_000) }, LATE))).toEqual(numbers(ROWS - 20_000, ROWS - 19_991, () => true));
    for (const [state, count] of [['held', HELD], ['pending', PENDING]] as const) expect((await all({ state }, LATE)).messages.map(({ topic }) => topic)).toEqual(Array(count).fill(state));
  });

  it('shows one, and counts what waits, without a look at the history', async () => {
    const { id, messageId } = (await admin.find({}, { after: String(ROWS / 2), limit: 1 })).messages[0] as FoundMessage;
    for (const name of [id, messageId]) {
      const { result, reads } = await counter.during(() => admin.show(name, { content: true }));
      expect(result).toMatchObject({ id, messageId, payload: '{"some":"payload"}' });
      expect(reads).toBeLessThanOrEqual(100);
    }
    const stats = await counter.during(() => admin.stats());
    expect(stats.result).toMatchObject({ pending: PENDING, held: HELD, dead: DEAD });
    expect(stats.reads).toBeLessThanOrEqual(5 * (PENDING + HELD + DEAD) + BESIDES);
    const queue = await counter.during(() => admin.queue(String(ROWS)));
    expect(queue.result).toMatchObject({ added: PENDING + HELD });
    expect(queue.reads).toBeLessThanOrEqual(5 * (PENDING + HELD) + BESIDES);
  });

  it('turns pages that neither skip nor repeat while rows are written and taken away', async () => {
    const filter = { topic: 'bills' };
    const there = async (): Promise<Set<string>> =>
      new Set((await f.query<{ id: string }>(`SELECT ${f.store.dialect.idText('id')} AS id FROM ${f.tables.message} WHERE topic = 'bills' ORDER BY id`)).map(({ id }) => id));
    const before = await there();
    const paging = { ended: false };
    const writer = (async () => {
      while (!paging.ended) {
        await f.add(...Array.from({ length: 20 }, (_, n) => message({ topic: 'bills', key: `new-${n}` })));
const gone = Array.from({ length: 20 }, () => 10 * Math.ceil((Math.random() * (ROWS - DEAD)) / 10 - 1));
        await f.query(`DELETE FROM ${f.tables.message} WHERE id IN (${gone.join(', ')})`);
      }
    })();
    const seen: string[] = [];
    for (let after: string | null = '0'; after !== null; ) {
      const page: MessagePage = await admin.find(filter, { after, limit: 700 });
      seen.push(...idsOf(page));
      after = page.next;
    }
    paging.ended = true;
    await writer;
    const left = await there();
    expect([[...before].every((id) => left.has(id)), [...left].every((id) => before.has(id))]).toEqual([false, false]);
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.map(Number).every((id, i) => i === 0 || id > Number(seen[i - 1]))).toBe(true);
    const found = new Set(seen);
    expect([...before].filter((id) => left.has(id) && !found.has(id))).toEqual([]);
  });

  /** An act in transactions of 500 messages, each of which reads what it needs. */
  async function inBatches(act: (target: Target) => (onProgress: (soFar: ActResult) => void) => Promise<ActResult>, target: Target, done: number, pages = Math.ceil(done / BATCH) + 1): Promise<void> {
    const steps: number[] = [0];
    const { result, reads } = await counter.during(() => act(target)((soFar) => steps.push(soFar.done)));
    expect(result).toEqual({ done, notFound: [], skipped: [] });
    expect(steps.at(-1)).toBe(done);
    expect(Math.max(...steps.map((step, i) => step - (steps[i - 1] ?? 0)))).toBeLessThanOrEqual(BATCH);
    expect(Math.max(...counter.changed)).toBeLessThanOrEqual(BATCH);
    expect(counter.changed.length).toBeGreaterThanOrEqual(done / BATCH);
    expect(reads, `of ${done}`).toBeLessThanOrEqual(pages * PAGE + EACH * done + BESIDES);
  }

  it('requeues, discards and replays by filter in short transactions, and all that there is', async () => {
    const { pending } = await admin.stats();
    await inBatches((target) => (onProgress) => admin.requeue(target, BY, { onProgress }), { topic: 'bills', limit: 1_000_000 }, DEAD / 10);
    await inBatches((target) => (onProgress) => admin.discard(target, BY, { onProgress }), { state: 'held', limit: 1_000_000 }, HELD, ROWS / 10_000 + HELD / BATCH + 2);
    await inBatches((target) => (onProgress) => admin.discard(target, BY, { onProgress }), { state: 'dead', type: 't1', limit: 200 }, 200);
    await inBatches((target) => (onProgress) => admin.requeue(target, BY, { onProgress }), { limit: 1_000_000 }, DEAD - DEAD / 10 - 200);
    expect(await f.count('dead')).toBe(0);
    await inBatches((target) => (onProgress) => admin.replay(target, BY, { onProgress }), { topic: 'orders', limit: 1500 }, 1500);
    expect((await admin.stats()).pending).toBe(pending + DEAD - 200 + 1500);
  });

  it('purges in batches that read what they take away', async () => {
    const DAY = 24 * 3600 * 1000;
    // Given up among what was sent, and old by now.
    const dead = `id > ${ROWS - DEAD} AND id % 10 = 3 AND status = 0`;
    await f.query(`INSERT INTO ${f.tables.dead} (id, lane, topic, message_key) SELECT id, 0, topic, message_key FROM ${f.tables.message} WHERE ${dead}`);
    await f.query(`DELETE FROM ${f.tables.pending} WHERE id IN (SELECT id FROM ${f.tables.dead})`);
    const { nowPlusMs } = f.store.dialect;
    await f.query(`UPDATE ${f.tables.message} SET status = 2, updated_at = ${nowPlusMs} WHERE ${dead}`, [-8 * DAY]);
    await f.query(`UPDATE ${f.tables.message} SET created_at = ${nowPlusMs}, updated_at = ${nowPlusMs} WHERE id <= ${ROWS / 50}`, [-8 * DAY, -8 * DAY]);
    const expected = { sent: await f.count('message', `id <= ${ROWS / 50} AND status = 1`), dead: await f.count('dead') };
    expect(Math.min(expected.sent, expected.dead)).toBeGreaterThan(0);
    const { result, reads } = await counter.during(() => admin.purge(BY, { sent: 7 * DAY, dead: 7 * DAY, batchSize: 500 }));
    expect(result).toMatchObject({ outcome: 'done', purged: expected });
    expect(Math.max(...counter.changed)).toBeLessThanOrEqual(BATCH);
    expect(reads).toBeLessThanOrEqual(EACH * (expected.sent + expected.dead) + BESIDES);
  });

  it('is told the same over HTTP', async () => {
    const { database: name } = f.dataSource.options;
    const test = await startHttp(database, undefined, 'express', { dataSource: { database: name, synchronize: false, poolSize: 1 } });
    const app = ReadCounter.over(test.dataSource, f.dataSource);
    const get = async <T>(path: string): Promise<T> => {
      const { result, reads } = await app.during(() => request(test.app.getHttpServer() as never).get(`/outbox/${path}`).set('x-user', 'ben').expect(200));
      expect(reads, path).toBeLessThanOrEqual(LOOK);
      return result.body as T;
    };
    const { pending, held, dead } = await admin.stats();
    expect(await get('stats')).toMatchObject({ pending, held, dead });
    expect(await get(`queue?since=${ROWS}`)).toMatchObject({ added: await f.count('message', `id > ${ROWS}`) });
    const seen: string[] = [];
    for (let after: string | null = LATE; after !== null; ) {
      const page: MessagePage = await get(`messages?key=k77&type=t3&limit=3&after=${after}`);
      seen.push(...idsOf(page));
      after = page.next;
    }
    expect(seen).toEqual(idsOf(await all({ key: 'k77', type: 't3' }, LATE)));
    expect(await get(`messages/${seen[0]}`)).toMatchObject({ id: seen[0], key: 'k77' });
    await test.close();
  });

  it('is told the same on the command line', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'outbox-history-'));
    const file = join(folder, 'ormconfig.mjs');
    // The data source of the counter, which stays open.
    await writeFile(file, 'export const dataSource = globalThis.countedDataSource;');
    const outbox = async <T>(...args: string[]): Promise<T> => {
      const lone = await ReadCounter.open(f.dataSource.options, f.dataSource);
      const end = lone.dataSource.destroy.bind(lone.dataSource);
      Object.assign(globalThis, { countedDataSource: Object.assign(lone.dataSource, { destroy: async () => undefined }) });
      const said: string[] = [];
      const { reads } = await lone.during(() => runCommand(['--data-source', `${file}`, '--json', ...args], { out: (text) => said.push(text), err: () => undefined }));
      await end();
      expect(reads, args.join(' ')).toBeLessThanOrEqual(LOOK);
      return JSON.parse(said.join('')) as T;
    };
    const { pending, held, dead } = await admin.stats();
    expect(await outbox('status')).toMatchObject({ pending, held, dead });
    const seen: string[] = [];
    for (let after: string | null = LATE; after !== null; ) {
      const page: MessagePage = await outbox('list', '--key', 'k77', '--type', 't3', '--after', after);
      seen.push(...idsOf(page));
      after = page.next;
    }
    expect(seen).toEqual(idsOf(await all({ key: 'k77', type: 't3' }, LATE)));
    await rm(folder, { recursive: true });
  });
});
