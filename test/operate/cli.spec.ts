import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runCommand } from '../../libs/outbox/src/cli/program';
import { SERVERS } from '../setup/databases';
import { message, StoreFixture } from '../store/fixture';

describe.each(SERVERS)('npx outbox on %s', (database) => {
  let f: StoreFixture;
  let url: string;
  beforeAll(async () => {
    f = await StoreFixture.open(database);
    const server = new URL(process.env[`OUTBOX_${database.toUpperCase()}_URL`] ?? '');
    server.pathname = `/${String(f.dataSource.options.database)}`;
    url = server.href;
  });
  beforeEach(() => f.clear());
  afterAll(() => f.close());

  async function outbox(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const [out, err]: [string[], string[]] = [[], []];
    const code = await runCommand(['--url', url, ...args], { out: (text) => out.push(text), err: (text) => err.push(text) });
    return { code, out: out.join('\n'), err: err.join('\n') };
  }

  it('tells how it is, lists, shows, requeues and discards', async () => {
    await f.add(message({ key: 'a', payload: '1' }), message({ key: 'b', payload: '2' }));
    expect(await outbox('status')).toMatchObject({ code: 0 });
    await f.once(({ messages }) => ({ parked: messages.map((m) => ({ message: m, error: 'TOO_LARGE: it is', blocks: false })) }));
    const status = await outbox('status', '--json');
    expect(status.code).toBe(1);
    expect(JSON.parse(status.out)).toMatchObject({ dead: 2, topics: [{ topic: 'orders', dead: 2 }] });
    const list = await outbox('list', '--state', 'dead', '--limit', '1');
    expect(list).toMatchObject({ code: 0 });
    expect(list.out).toMatch(/TOO_LARGE: it is\nMore with --after \d+$/);
    const { messages } = JSON.parse((await outbox('--json', 'list', '--topic', 'orders')).out) as { messages: { id: string }[] };
    const [one, two] = messages.map(({ id }) => id);
    expect((await outbox('show', String(one), '--content')).out).toContain('payload');
    expect((await outbox('show', String(one))).out).not.toContain('payload');
    expect(await outbox('show', '999999')).toMatchObject({ code: 1, err: 'There is no message 999999.' });
    expect(await outbox('requeue', String(one), '--reason', 'mended', '--by', 'anna')).toMatchObject({ code: 0, out: 'requeue: 1 done' });
    expect(await outbox('requeue', String(one), '999999', '--reason', 'again')).toMatchObject({ code: 1, out: `requeue: 0 done\nnot found: 999999\nskipped: ${one} is pending` });
    expect(await outbox('discard', '--topic', 'orders', '--limit', '10', '--reason', 'wrong', '--by', 'ben')).toMatchObject({ code: 0, out: 'discard: 1 done' });
    expect(await f.query(`SELECT last_error FROM ${f.tables.message} WHERE id = ${two}`)).toEqual([{ last_error: 'discarded by ben: wrong' }]);
    expect(await f.sendAll()).toHaveLength(1);
    await f.sweep();
    expect(await outbox('replay', '--state', 'sent', '--from', '2020-01-01', '--limit', '5', '--reason', 'test')).toMatchObject({ out: 'replay: 1 done' });
    expect(await f.count('pending')).toBe(1);
    const audit = await outbox('audit', '--message', String(two));
    expect(audit.code).toBe(0);
    expect(audit.out).toMatch(/^id +at +act +by +outcome +on +result +why\n\d+ +\S+Z +discard +ben +done +\{"topic":"orders","limit":10\} +\{"done":1,.*\} +wrong$/);
    const newest = JSON.parse((await outbox('--json', 'audit', '--limit', '1')).out) as { acts: object[]; next: string };
    expect(newest).toMatchObject({ acts: [{ act: 'replay', reason: 'test' }], next: expect.any(String) as unknown });
    expect((await outbox('audit', '--by', 'anna', '--before', newest.next)).out).toContain('requeue');
    expect(await outbox('audit', '--from', 'yesterday')).toMatchObject({ code: 2 });
  });

  it('shows on a terminal how far a long act is, and nothing with --json', async () => {
    const discard = async (...more: string[]): Promise<string[]> => {
      await f.add(...Array.from({ length: 1200 }, (_, n) => message({ key: `k${n}` })));
      const lines: string[] = [];
      const args = ['--url', url, 'discard', '--state', 'pending', '--limit', '1200', '--reason', 'wrong', ...more];
      const output = { out: () => undefined, err: (text: string) => lines.push(text), rewrite: (text: string) => lines.push(text) };
      expect(await runCommand(args, output)).toBe(0);
      return lines;
    };
    expect(await discard()).toEqual([
      '[##########--------------]  41 % 500 done',
      '[####################----]  83 % 1000 done',
      '[########################] 100 % 1200 done',
      '',
      '',
    ]);
    expect(await discard('--json')).toEqual([]);
  });

  it('pauses, resumes, stops keys, and purges', async () => {
    expect(await outbox('pause', '--reason', 'maintenance')).toMatchObject({ code: 0, out: 'pause: all relays' });
    expect((await outbox('status')).out).toContain('All relays are paused.');
    await outbox('resume', '--reason', 'done');
    expect(await outbox('pause', 'orders', '--reason', 'maintenance')).toMatchObject({ code: 0, out: 'pause: topic orders' });
    await outbox('resume', 'orders', '--reason', 'done');
    expect(await outbox('block', 'orders', 'k', '--reason', 'look')).toMatchObject({ code: 0 });
    expect(await outbox('release', 'orders', 'k', '--reason', 'looked')).toMatchObject({ code: 0, out: 'release: orders k' });
    expect(await outbox('release', 'orders', 'k', '--reason', 'looked')).toMatchObject({ code: 0, out: 'It was not stopped.' });
    expect(await outbox('purge', '--sent', '0ms', '--reason', 'space')).toMatchObject({ code: 0, out: 'purge: 0 sent, 0 dead, 0 consumed, 0 failures, 0 audit, 0 sequences, 0 history' });
  });

  it('tells all relays from a topic of that name', async () => {
    const pause = async (...topic: string[]): Promise<unknown> => JSON.parse((await outbox('--json', 'pause', ...topic, '--reason', 'maintenance')).out);
    expect([await pause('all'), await pause()]).toEqual([{ pause: { topic: 'all' } }, { pause: { relays: 'all' } }]);
    const { acts } = JSON.parse((await outbox('--json', 'audit', '--act', 'pause', '--limit', '2')).out) as { acts: { target: object }[] };
    expect(acts.map(({ target }) => target)).toEqual([{ relays: 'all' }, { topic: 'all' }]);
    await outbox('resume', '--reason', 'done');
    await outbox('resume', 'all', '--reason', 'done');
  });

  it.each([
    ['list', '--topic', 'näme'],
    ['list', '--key', 'a\0'],
    ['audit', '--by', 'a\0'],
    ['requeue', '--topic', 'or ders', '--limit', '1', '--reason', 'x'],
    ['block', 'orders', 'a\0', '--reason', 'x'],
    ['release', 'orders', 'a'.repeat(191), '--reason', 'x'],
  ])('takes no filter and no key that nothing can have: %s %s %j', async (...args) => {
    const { code, err } = await outbox(...args);
    expect(code).toBe(2);
    expect(err).toMatch(/not the name of a topic|must be a text/);
  });

  it('says what is wrong, and does nothing then', async () => {
    for (const [args, said] of [
      [['requeue', '1'], '--reason'],
      [['requeue', '--reason', 'x'], 'with --limit'],
      [['requeue', '1', '--limit', '1', '--reason', 'x'], 'not both'],
      [['requeue', '--state', 'sent', '--limit', '1', '--reason', 'x'], 'dead or discarded'],
      [['list', '--from', 'yesterday'], '2026-01-31'],
      [['list', '--limit', '0'], 'limit'],
      [['purge', '--sent', '7 days', '--reason', 'x'], '7d'],
      [['nonsense'], 'nonsense'],
      [['--tables', '{', 'status'], '--tables'],
      [['--data-source', 'x.js', 'status'], 'not both'],
      [['dead-letters', 'list', 'orders.dlt'], '--brokers'],
    ] as const) {
      const { code, err } = await outbox(...args);
      expect([code, err], args.join(' ')).toEqual([2, expect.stringContaining(said)]);
    }
    const away = await runCommand(['--url', `${url.slice(0, url.lastIndexOf('/'))}/no_such_database`, 'status'], { out: () => undefined, err: () => undefined });
    expect(away).toBe(1);
    expect(await outbox('--tables', '{"message":"other"}', 'status')).toMatchObject({ code: 1, err: expect.stringContaining('outboxMigrations()') as unknown });
  });

  it('is a doctor, whose exit code says whether there is a fault', async () => {
    const well = await outbox('doctor', '--lanes', '8');
    expect([well.code, well.err]).toEqual([0, '']);
    expect(well.out).toMatch(/^ +check +seen\nok +server\.version +\S+ \d/);
    expect(well.out).toMatch(/0 fault, 0 warning, 0 unknown, \d+ ok$/);
    const ill = await outbox('doctor', '--lanes', '9', '--json');
    expect(ill.code).toBe(1);
    expect(JSON.parse(ill.out)).toMatchObject({ healthy: false, findings: expect.arrayContaining([expect.objectContaining({ check: 'tables.lanes', verdict: 'fault' })]) as unknown });
    // Where every other command gives up, it says what is missing.
    const none = await outbox('--tables', '{"message":"other"}', 'doctor');
    expect(none.code).toBe(1);
    expect(none.out).toMatch(/FAULT +tables\.present +missing[^\n]* other\n/);
    expect(none.out).toMatch(/What to do:\nFAULT tables\.present: Add outboxMigrations\(\)/);
    const brokers = process.env['OUTBOX_KAFKA_BROKERS'] ?? '';
    const kafka = await outbox('doctor', '--brokers', brokers, '--topics', 'no-such-topic');
    expect(kafka.code).toBe(1);
    expect(kafka.out).toContain('there is no topic no-such-topic');
    expect(await outbox('doctor', '--lanes', '0')).toMatchObject({ code: 2, err: expect.stringContaining('lanes must be') as unknown });
  });

  it('takes the data source of the app, and prints the tables', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'outbox-cli-'));
    try {
      const file = join(folder, 'ormconfig.mjs');
      const typeorm = JSON.stringify(new URL('../../node_modules/typeorm/index.mjs', import.meta.url).href);
      await writeFile(file, `import { DataSource } from ${typeorm};\nexport const dataSource = new DataSource({ type: '${database}', url: '${url}', synchronize: true });\n`);
      const said: string[] = [];
      const output = { out: (text: string) => said.push(text), err: (text: string) => said.push(text) };
      expect(await runCommand(['--data-source', file, 'status'], output)).toBe(0);
      expect(said.join('\n')).toContain('pending 0');
      expect(await runCommand(['--data-source', join(folder, 'none.js'), 'status'], output)).toBe(2);
      const written = join(folder, 'tables.sql');
      expect(await runCommand(['migration', '--dialect', database, '--write', written], output)).toBe(0);
      expect(await runCommand(['migration', '--dialect', database, '--write', written], output)).toBe(1);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
