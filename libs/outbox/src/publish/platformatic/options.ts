import type { ConnectionOptions } from 'node:tls';
import zlib from 'node:zlib';
import { OutboxOptionsError } from '../../errors';
import { requestBytes } from '../kafka/limits';
import { checkTopics, type TopicSpec } from '../topic-spec';

type Provider<T = string> = T | (() => T | Promise<T>);

/** `sasl` of @platformatic/kafka. */
export interface PlatformaticSaslOptions {
  readonly mechanism: 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512' | 'OAUTHBEARER' | 'GSSAPI';
  readonly username?: Provider;
  readonly password?: Provider;
  readonly token?: Provider;
  readonly oauthBearerExtensions?: Provider<Record<string, string>>;
  /** The client's own hooks, handed on as they are. */
  readonly authenticate?: (...args: never[]) => void;
  readonly authBytesValidator?: (...args: never[]) => void;
}

/** Options of the client, by its own names; it gets them untouched. */
export interface PlatformaticClientOptions {
  readonly clientId: string;
  /** `host:port` of some brokers; the others are found through them. */
  readonly bootstrapBrokers: readonly string[] | readonly { readonly host: string; readonly port: number }[];
  readonly tls?: ConnectionOptions;
  readonly tlsServerName?: string | boolean;
  readonly sasl?: PlatformaticSaslOptions;
  /** Milliseconds that a connection to one broker may take. Default: the client's, 5000. */
  readonly connectTimeout?: number;
  /** Milliseconds that one request may take, in any case no longer than the publish. Default: the client's, 30,000. */
  readonly requestTimeout?: number;
  /** Milliseconds that a broker waits for its replicas. Default: the client's, 5000. */
  readonly timeout?: number;
  /** Milliseconds after which new partitions of a topic are noticed. Default: 300,000, as in the Java client. */
  readonly metadataMaxAge?: number;
}

export interface PlatformaticPublisherOptions extends PlatformaticClientOptions {
  /**
   * Uses Kafka's idempotent producer. The publisher never lets the client try again by itself, so it adds a second
   * guard, not another promise: consumers need to recognise repeats all the same. Default: false.
   */
  readonly idempotent?: boolean;
  /** Codec of the batches. `zstd` needs Node 22.15 or later. Default: none. */
  readonly compression?: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd';
  /**
   * Bytes of records that go into one request, before compression. A record that alone is larger is still sent, and
   * the broker decides. Default: 900,000, which leaves room under the 1 MiB that Kafka takes by default.
   */
  readonly maxRequestBytes?: number;
  /**
   * Topics that are created where they do not exist, by the process that relays, when it starts; while the broker is
   * away, before the first batch. What is there is never altered. Default: none, and then nothing is ever created.
   */
  readonly topics?: readonly TopicSpec[];
}

export interface ResolvedPlatformaticOptions {
  readonly client: PlatformaticClientOptions;
  readonly idempotent: boolean;
  readonly compression: NonNullable<PlatformaticPublisherOptions['compression']>;
  readonly maxRequestBytes: number;
  readonly topics: readonly TopicSpec[];
  readonly metadataMaxAge: number;
}

const DEFAULT_METADATA_MAX_AGE = 300_000;

const OPTIONS: Record<keyof PlatformaticPublisherOptions, true> = {
  clientId: true,
  bootstrapBrokers: true,
  tls: true,
  tlsServerName: true,
  sasl: true,
  connectTimeout: true,
  requestTimeout: true,
  timeout: true,
  metadataMaxAge: true,
  idempotent: true,
  compression: true,
  maxRequestBytes: true,
  topics: true,
};
const CODECS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'];
const MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER', 'GSSAPI'];
const TIMES = ['connectTimeout', 'requestTimeout', 'timeout', 'metadataMaxAge'] as const;

/** @throws OutboxOptionsError */
export function resolvePlatformaticOptions(options: PlatformaticPublisherOptions): ResolvedPlatformaticOptions {
  if (typeof options !== 'object' || options === null) fail('needs options such as { clientId, bootstrapBrokers }.');
  const { idempotent = false, compression = 'none', maxRequestBytes, topics = [], ...client } = options;
  // What is not known here could make the client send again by itself, or keep less than it acknowledges.
  const unknown = Object.keys(options).filter((name) => !Object.hasOwn(OPTIONS, name));
  if (unknown.length > 0) {
    fail(`does not take ${unknown.join(', ')}. Known are: ${Object.keys(OPTIONS).join(', ')}.`);
  }
  if (typeof client.clientId !== 'string' || client.clientId === '') fail('needs a clientId.');
  const { bootstrapBrokers } = client;
  if (!Array.isArray(bootstrapBrokers) || bootstrapBrokers.length === 0 || !bootstrapBrokers.every(isBroker)) {
    fail('needs bootstrapBrokers to be a list such as ["localhost:9092"].');
  }
  if (typeof idempotent !== 'boolean') fail('needs idempotent to be true or false.');
  if (!CODECS.includes(compression)) fail(`does not know the compression ${String(compression)}: ${CODECS.join(', ')}.`);
  if (compression === 'zstd' && !('zstdCompressSync' in zlib)) fail('has no zstd before Node 22.15: try gzip.');
  if (client.sasl !== undefined && !MECHANISMS.includes(client.sasl?.mechanism)) {
    fail(`does not know the SASL mechanism ${String(client.sasl?.mechanism)}: ${MECHANISMS.join(', ')}.`);
  }
  for (const name of TIMES) {
    const time = client[name];
    if (time !== undefined && !(Number.isFinite(time) && time > 0)) {
      fail(`needs ${name} to be milliseconds above 0, not ${String(time)}.`);
    }
  }
  return {
    client,
    idempotent,
    compression,
    maxRequestBytes: requestBytes(maxRequestBytes),
    topics: checkTopics(topics),
    metadataMaxAge: client.metadataMaxAge ?? DEFAULT_METADATA_MAX_AGE,
  };
}

function isBroker(broker: unknown): boolean {
  if (typeof broker === 'string') return broker !== '';
  return typeof broker === 'object' && broker !== null && 'host' in broker && 'port' in broker;
}

function fail(what: string): never {
  throw new OutboxOptionsError(`platformaticPublisher ${what}`);
}
