import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runCommand } from '../../libs/outbox/src/cli/program';
import { KafkaSide } from '../consume/kafka-side';
import { until } from '../consume/until';
import { SERVERS } from '../setup/databases';
import { message, StoreFixture } from '../store/fixture';
import { RelayProgram } from './relay-program';

const CLIENTS = { mysql: 'kafkajs', mariadb: 'platformatic', postgres: 'kafkajs' } as const;
/** Small, so that there are many. */
const BATCH = 50;

describe.each(SERVERS)('npx outbox relay on %s', (database) => {
  const side = new KafkaSide();
  const relays: RelayProgram[] = [];
  let f: StoreFixture;
  let url: string;
  let topic: string;

  beforeAll(async () => {
    await side.connect();
    f = await StoreFixture.open(database);
    const server = new URL(process.env[`OUTBOX_${database.toUpperCase()}_URL`] ?? '');
    server.pathname = `/${String(f.dataSource.options.database)}`;
    url = server.href;
  });
  beforeEach(async () => {
    await f.clear();
    topic = `relay-program-${randomUUID().slice(0, 8)}`;
    await side.createTopics([topic], 3);
  });
  afterEach(async () => {
    for (const relay of relays.splice(0)) await relay.kill();
  });
  afterAll(async () => {
    await f.close();
    await side.close();
  });

  function relay(...args: string[]): RelayProgram {
    const program = new RelayProgram(['relay', '--batch-size', String(BATCH), '--poll-interval', '20ms', '--client', CLIENTS[database], ...args], {
      DATABASE_URL: url,
      KAFKA_BROKERS: side.brokers.join(','),
    });
    relays.push(program);
    return program;
  }

  /** Emits in small transactions, as an app would, until it is told to end. */
  function emitting(): { readonly ids: string[]; end(): Promise<void> } {
    const ids: string[] = [];
    const over = new AbortController();
    const all = (async () => {
      for (let n = 0; !over.signal.aborted; n++) {
        const made = Array.from({ length: 5 }, (_, i) => message({ topic, key: `k${i}`, payload: String(n) }));
        await f.add(...made);
        await setTimeout(10);
        ids.push(...made.map(({ messageId }) => messageId));
      }
    })();
    return {
      ids,
      async end() {
        over.abort();
        await all;
      },
    };
  }

  async function drained(): Promise<void> {
    await until('nothing waits', async () => (await f.count('pending')) === 0);
  }

  async function sentIds(): Promise<string[]> {
    const records = await side.read(topic);
    const last = new Map<string, number>();
    const seen = new Set<string>();
    for (const { key, value, headers } of records) {
      if (seen.has(String(headers['id']))) continue;
      seen.add(String(headers['id']));
      expect(Number(value), 'the order of its key').toBeGreaterThan(last.get(String(key)) ?? -1);
      last.set(String(key), Number(value));
    }
    return records.map(({ headers }) => String(headers['id']));
  }

  it('sends what others emit; asked to stop, it settles its batches, and the next one goes on: nothing is lost or sent twice', async () => {
    const first = relay();
    await first.says('Relay started');
    const flow = emitting();
    await until('much was sent', async () => flow.ids.length - (await f.count('pending')) > 4 * BATCH);
    first.signal('SIGTERM');
    expect(await first.ended()).toBe(0);
    expect(first.output).toMatch(/info {2}\[OutboxRelay\] SIGTERM: .*\n.* Relay stopped, \d+ messages published\.\n$/);
    const before = flow.ids.length;
    await until('more was emitted meanwhile', () => flow.ids.length > before + 10 * BATCH);
    expect(await f.count('pending')).toBeGreaterThan(0);
    const second = relay();
    await until('it goes on', async () => (await f.count('settled')) + (await f.count('message', 'status = 1')) > 0 && second.output.includes('Relay started'));
    await flow.end();
    await drained();
    second.signal('SIGINT');
    expect(await second.ended()).toBe(0);
    const sent = await sentIds();
    expect(new Set(sent)).toEqual(new Set(flow.ids));
    expect(sent).toHaveLength(flow.ids.length);
  });

  it('is taken over from when it is killed: nothing is lost, and no more comes twice than was on its way', async () => {
    const [first, second] = [relay(), relay()];
    await Promise.all([first.says('Relay started'), second.says('Relay started')]);
    const flow = emitting();
    await until('much was sent', async () => flow.ids.length - (await f.count('pending')) > 4 * BATCH);
    await first.kill();
    const before = flow.ids.length;
    await until('more was emitted meanwhile', () => flow.ids.length > before + 10 * BATCH);
    await flow.end();
    await drained();
    const sent = await sentIds();
    expect(new Set(sent)).toEqual(new Set(flow.ids));
    expect(sent.length - flow.ids.length).toBeLessThanOrEqual(2 * BATCH);
  });

  it('ends at once with a second signal, though its batch cannot be settled', async () => {
    await f.add(message({ topic }));
    const program = relay('--shutdown-timeout', '10m');
    const holder = f.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query(`SELECT id FROM ${f.tables.pending} FOR UPDATE`);
    try {
      await until('it is on the topic', async () => (await side.count(topic)) === 1);
      program.signal('SIGTERM');
      await program.says('SIGTERM: the running batches end');
      program.signal('SIGINT');
      expect(await program.ended()).toBe(130);
    } finally {
      await holder.rollbackTransaction();
      await holder.release();
    }
    const next = relay();
    await drained();
    next.signal('SIGTERM');
    expect(await next.ended()).toBe(0);
  });

  it('tells figures and health, and says in its log what was given up, as JSON where that is asked for', async () => {
    const program = relay('--json', '--metrics-port', '0', '--max-attempts', '1', '--on-exhausted', 'block');
    await program.says('Relay started');
    const port = /Metrics and health on port (\d+)/.exec(program.output)?.[1];
    const get = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`);
    // More than a broker takes.
    await f.add(message({ topic, key: 'large', payload: 'x'.repeat(1_200_000) }), message({ topic, key: 'small' }));
    await program.says(/Given up: message \S+ \(id \d+\) for relay-program-\S+: .*; its key waits\./);
    await drained();
    expect(await (await get('/metrics')).text()).toMatch(/outbox_messages_published_total\{[^}]*\} 1\n/);
    const live = await get('/health/live');
    expect([live.status, await live.json()]).toEqual([200, expect.objectContaining({ status: 'up', running: true })]);
    const ready = await get('/health/ready');
    expect([ready.status, await ready.json()]).toEqual([200, expect.objectContaining({ status: 'up', dead: 1 })]);
    expect((await get('/')).status).toBe(404);
    expect((await fetch(`http://127.0.0.1:${port}/metrics`, { method: 'POST' })).status).toBe(405);
    program.signal('SIGTERM');
    expect(await program.ended()).toBe(0);
    const lines = program.output.trim().split('\n').map((line) => JSON.parse(line) as { message: string; level: string });
    expect(lines.find(({ message: text }) => text.startsWith('Relay started'))).toMatchObject({ level: 'info', context: 'OutboxRelay', message: expect.stringContaining(`${database}, 8 lanes, 2 workers`) as unknown });
    expect(lines.find(({ message: text }) => text.startsWith('Given up'))).toMatchObject({ level: 'error' });
    expect(program.output).not.toContain(url);
  });

  it('says what is wrong with its set-up, and ends', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, resolve));
    const { port } = taken.address() as { port: number };
    const brokers = ['--brokers', side.brokers.join(',')];
    const folder = await mkdtemp(join(tmpdir(), 'outbox-'));
    const file = join(folder, 'one-process.db');
    await writeFile(file, '');
    const elsewhere = `${url.slice(0, url.lastIndexOf('/'))}/no_such_database`;
    for (const [args, code, said, address = url] of [
      [[], 2, 'Which brokers?'],
      [[...brokers, '--batch-size', '0'], 2, 'relay.batchSize'],
      [[...brokers, '--publish-timeout', '1h'], 2, 'relay.sessionTimeout'],
      [[...brokers, '--poll-interval', 'never'], 2, '500ms'],
      [[...brokers, '--metrics-port', '70000'], 2, '65535'],
      [[...brokers, '--metrics-port', String(port)], 1, 'cannot be had'],
      [[...brokers, '--client', 'other'], 2, 'kafkajs, platformatic'],
      [[...brokers, '--cloud-events', 'a b'], 2, 'cloudEvents.source'],
      [[...brokers, '--nonsense'], 2, 'nonsense'],
      [[...brokers, '--sasl-username', 'outbox'], 2, '--sasl-mechanism'],
      [[...brokers, '--tls-cert', 'x.pem'], 2, '--tls-key'],
      [[...brokers, '--tls-ca', '/nowhere/ca.pem'], 2, '/nowhere/ca.pem'],
      [['--kafka-config', '/nowhere/kafka.json'], 2, '/nowhere/kafka.json'],
      [[...brokers], 1, 'cannot be reached', elsewhere],
      [[...brokers], 2, 'belongs to one process', `sqlite:${file}`],
    ] as [string[], number, string, string?][]) {
      const err: string[] = [];
      const result = await runCommand(['--url', address, 'relay', ...args], { out: () => undefined, err: (text) => err.push(text) });
      expect([result, err.join('\n')], args.join(' ')).toEqual([code, expect.stringContaining(said)]);
    }
    taken.close();
    await rm(folder, { recursive: true });
  });
});
