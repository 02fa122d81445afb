import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../../libs/outbox/src/cli/program';
import { until } from '../consume/until';
import { KafkaBroker } from '../publish/kafka-broker';
import { type SecureKafka, startSecureKafka } from '../publish/secure-kafka';
import { kafkaJava } from '../services/index.mjs';
import { message, StoreFixture } from '../store/fixture';
import { RelayProgram } from './relay-program';

const java = await kafkaJava().catch((error: unknown) => {
  if (process.env.CI) throw error;
  return null;
});

describe.skipIf(java === null)('brokers that want TLS and a password, on the command line', { timeout: 120_000 }, () => {
  const relays: RelayProgram[] = [];
  let kafka: SecureKafka;
  let onlooker: KafkaBroker;
  let f: StoreFixture;
  let url: string;
  let folder: string;
  let ca: string;

  beforeAll(async () => {
    kafka = await startSecureKafka({ idle: 600_000 });
    onlooker = await new KafkaBroker([kafka.open]).connect();
    f = await StoreFixture.open('postgres');
    const server = new URL(process.env['OUTBOX_POSTGRES_URL'] ?? '');
    server.pathname = `/${String(f.dataSource.options.database)}`;
    url = server.href;
    folder = await mkdtemp(join(tmpdir(), 'outbox-cli-'));
    ca = join(folder, 'ca.pem');
    await writeFile(ca, kafka.certificate);
    await writeFile(join(folder, 'password'), `${kafka.password}\n`);
  });
  afterEach(async () => {
    for (const relay of relays.splice(0)) await relay.kill();
  });
  afterAll(async () => {
    await f?.close();
    await onlooker?.close();
    await kafka?.remove();
    await rm(folder, { recursive: true, force: true });
  });

  function relay(args: readonly string[], variables: Record<string, string>): RelayProgram {
    const program = new RelayProgram(['--url', url, 'relay', '--poll-interval', '50ms', ...args], variables);
    relays.push(program);
    return program;
  }

  it.each(['kafkajs', 'platformatic'])('are published to by %s, from the environment; a wrong password is told, and messages wait', async (client) => {
    const topic = await onlooker.createTopic({ partitions: 1 });
    await f.add(message({ topic, payload: '"secret"' }));
    const environment = { KAFKA_BROKERS: kafka.secure, KAFKA_TLS: 'on', KAFKA_TLS_CA: ca, KAFKA_SASL_MECHANISM: 'PLAIN', KAFKA_SASL_USERNAME: kafka.username };
    const wrong = relay(['--client', client], { ...environment, KAFKA_SASL_PASSWORD: 'a guess' });
    await wrong.says('Cannot publish (broker)');
    wrong.signal('SIGTERM');
    expect(await wrong.ended()).toBe(0);
    expect(await f.count('pending')).toBe(1);
    const right = relay(['--client', client], { ...environment, KAFKA_SASL_PASSWORD: kafka.password });
    await until('it was sent', async () => (await f.count('pending')) === 0);
    right.signal('SIGTERM');
    expect(await right.ended()).toBe(0);
    expect(wrong.output + right.output).not.toMatch(/a guess|only for this test/);
    expect(await onlooker.read(topic)).toHaveLength(1);
  });

  it('are read by dead-letters, by options or by a file of the client', async () => {
    const topic = await onlooker.createTopic({ partitions: 1 });
    const config = join(folder, 'kafka.json');
    await writeFile(config, JSON.stringify({ brokers: [kafka.secure], ssl: { ca: kafka.certificate }, sasl: { mechanism: 'plain', username: kafka.username, password: kafka.password } }));
    const tls = ['--tls-ca', ca];
    const sasl = ['--sasl-mechanism', 'PLAIN', '--sasl-username', kafka.username, '--sasl-password-file', join(folder, 'password')];
    for (const args of [['--brokers', kafka.secure, ...tls, ...sasl], ['--kafka-config', config]]) {
      const said: string[] = [];
      const code = await runCommand(['--url', url, '--json', 'dead-letters', 'list', topic, ...args], { out: (text) => said.push(text), err: (text) => said.push(text) });
      expect([code, said.join()]).toEqual([0, '{"letters":[],"next":null}']);
    }
    const program = relay(['--kafka-config', config], {});
    await program.says(`publishing to ${kafka.secure} with kafkajs`);
    program.signal('SIGTERM');
    expect(await program.ended()).toBe(0);
    for (const [args, said] of [
      [['--kafka-config', config, ...tls], 'not both'],
      [['--kafka-config', ca], 'cannot be loaded'],
    ] as [string[], string][]) {
      const err: string[] = [];
      expect(await runCommand(['--url', url, 'relay', ...args], { out: () => undefined, err: (text) => err.push(text) })).toBe(2);
      expect(err.join()).toContain(said);
    }
  });
});
