import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import type { KafkaConfig } from 'kafkajs';
import type { PlatformaticClientOptions } from '../publish/platformatic/options';
import { Failure } from './failure';
import { loadFile } from './load-file';
import { list } from './parse';

/** How the command line finds the brokers. */
export interface BrokerOptions {
  readonly brokers?: readonly string[];
  readonly kafkaConfig?: string;
  readonly tls?: true;
  readonly tlsCa?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly saslMechanism?: 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512';
  readonly saslUsername?: string;
  readonly saslPasswordFile?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The same brokers as each client wants to hear of them. */
export interface Brokers {
  /** For people; without secrets. */
  readonly names: string;
  kafkajs(): KafkaConfig;
  platformatic(): PlatformaticClientOptions;
}

/** The options of every command that talks to Kafka. A password is never an argument: all users of a machine see those. */
export function withBrokers(command: Command): Command {
  return command
    .addOption(new Option('--brokers <list>', 'brokers of Kafka, such as kafka:9092,kafka2:9092').env('KAFKA_BROKERS').argParser(list))
    .option('--tls', 'with TLS (env: KAFKA_TLS=on)')
    .addOption(new Option('--tls-ca <file>', 'who vouches for the brokers, as PEM').env('KAFKA_TLS_CA'))
    .addOption(new Option('--tls-cert <file>', 'the certificate of this client, as PEM').env('KAFKA_TLS_CERT'))
    .addOption(new Option('--tls-key <file>', 'the key of that certificate, as PEM').env('KAFKA_TLS_KEY'))
    .addOption(new Option('--sasl-mechanism <name>', 'how to log in').choices(['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512']).env('KAFKA_SASL_MECHANISM'))
    .addOption(new Option('--sasl-username <name>', 'as whom').env('KAFKA_SASL_USERNAME'))
    .addOption(new Option('--sasl-password-file <file>', 'a file with the password; or the environment variable KAFKA_SASL_PASSWORD').env('KAFKA_SASL_PASSWORD_FILE'))
    .addOption(new Option('--kafka-config <file>', "a file that exports the client's own options, for all that the others cannot say").env('KAFKA_CONFIG'));
}

/** @throws Failure */
export async function brokersOf(options: BrokerOptions, clientId: string, environment: Environment = process.env): Promise<Brokers> {
  const { brokers = [], kafkaConfig } = options;
  const tls = tlsOf(options, environment);
  const sasl = saslOf(options, environment);
  if (kafkaConfig !== undefined) {
    if (tls || sasl) throw new Failure('Give --kafka-config, or the options for TLS and SASL, not both.', 2);
    return fromFile(await configOf(kafkaConfig), brokers, clientId);
  }
  if (brokers.length === 0) throw new Failure('Which brokers? Give --brokers <list>, --kafka-config <file> or the environment variable KAFKA_BROKERS.', 2);
  return {
    names: brokers.join(', '),
    kafkajs: () => ({
      clientId,
      brokers: [...brokers],
      ...(tls ? { ssl: tls } : {}),
      ...(sasl ? { sasl: { ...sasl, mechanism: sasl.mechanism.toLowerCase() as 'plain' } } : {}),
    }),
    platformatic: () => ({ clientId, bootstrapBrokers: brokers, ...(tls ? { tls } : {}), ...(sasl ? { sasl } : {}) }),
  };
}

function fromFile(config: object, brokers: readonly string[], clientId: string): Brokers {
  const given = { clientId, ...config };
  const named = brokers.length > 0 ? brokers : [Reflect.get(given, 'brokers') ?? Reflect.get(given, 'bootstrapBrokers') ?? []].flat();
  // What they hold is checked where the client is made.
  return {
    names: named.map((one: unknown) => (typeof one === 'string' ? one : 'those of the file')).join(', '),
    kafkajs: () => ({ ...given, ...(brokers.length > 0 ? { brokers: [...brokers] } : {}) }) as KafkaConfig,
    platformatic: () => ({ ...given, ...(brokers.length > 0 ? { bootstrapBrokers: brokers } : {}) }) as PlatformaticClientOptions,
  };
}

async function configOf(file: string): Promise<object> {
  const path = resolve(file);
  if (!existsSync(path)) throw new Failure(`There is no file ${path}.`, 2);
  const exported: unknown = path.endsWith('.json') ? parse(path) : (await loadFile(path))['default'];
  if (typeof exported !== 'object' || exported === null || Array.isArray(exported)) throw new Failure(`${path} must hold the options of the client, such as { brokers: ["kafka:9092"] }, as its default export.`, 2);
  return exported;
}

function parse(path: string): unknown {
  try {
    return JSON.parse(read(path));
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw new Failure(`${path} is no JSON.`, 2, { cause });
  }
}

function tlsOf({ tls, tlsCa, tlsCert, tlsKey }: BrokerOptions, { KAFKA_TLS: variable }: Environment): { ca?: string; cert?: string; key?: string } | undefined {
  if (variable !== undefined && variable !== '' && variable !== 'on' && variable !== 'off') throw new Failure(`KAFKA_TLS must be "on" or "off", not "${variable}".`, 2);
  if ((tlsCert === undefined) !== (tlsKey === undefined)) throw new Failure('--tls-cert and --tls-key belong together.', 2);
  const files = Object.entries({ ca: tlsCa, cert: tlsCert, key: tlsKey }).flatMap(([name, file]) => (file === undefined ? [] : [[name, read(file)]]));
  return tls || variable === 'on' || files.length > 0 ? (Object.fromEntries(files) as object) : undefined;
}

function saslOf({ saslMechanism: mechanism, saslUsername: username, saslPasswordFile: file }: BrokerOptions, { KAFKA_SASL_PASSWORD: variable }: Environment) {
  if (mechanism === undefined && username === undefined && file === undefined) return undefined;
  // A password in a file mostly ends with a line break that is not part of it.
  const password = file === undefined ? variable : read(file).replace(/\r?\n$/, '');
  if (mechanism === undefined || username === undefined || password === undefined || password === '') {
    throw new Failure('SASL needs --sasl-mechanism, --sasl-username and a password: --sasl-password-file, or the environment variable KAFKA_SASL_PASSWORD.', 2);
  }
  return { mechanism, username, password };
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new Failure(`${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, 2, { cause });
  }
}
