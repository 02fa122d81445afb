import type { InjectionToken, ModuleMetadata, OptionalFactoryDependency } from '@nestjs/common';
import type { SharedConsumeOptions } from './consume/consumer-options';
import { assertConsumeOptions } from './consume/consumer-options-check';
import { OutboxOptionsError } from './errors';
import { assertKnown } from './event/assert-known';
import { checkCloudEvents, type CloudEventsOptions } from './publish/cloud-events';
import type { OutboxTracing } from './event/tracing';
import type { OutboxMetrics } from './observe/metrics/outbox-metrics';
import type { PublisherFactory } from './publish/publisher';
import { DEFAULT_RETENTION, type Retention, type RetentionOptions, retentionOf } from './operate/retention-options';
import { checkRelayOptions, DEFAULT_RELAY_OPTIONS, type RelayOptions } from './relay/relay-options';
import type { Order } from './store/outbox-store';
import type { EntityManager } from 'typeorm';
import type { ContextProvider } from './write/emit-context';
import { laneCount, type SchemaOptions, type TableNames, tableNames } from './store/tables';

export interface OutboxModuleOptions extends SchemaOptions {
  /** Name of the data source, as given to `TypeOrmModule`. Default `default`. */
  readonly dataSource?: string;
  /** The road to the broker, such as `kafkaPublisher({ … })`. */
  readonly publisher: PublisherFactory;
  /** Makes the tables at boot where they are missing, for development and tests. Default false: run the migrations. */
  readonly createTables?: boolean;
  /**
   * `commit`: messages of one key are published in the order in which their transactions committed. It costs a short
   * lock at the end of each transaction. `none`: no such order between transactions that overlap. Default `commit`.
   */
  readonly order?: Order;
  /** Largest message in bytes (payload, key, headers). Default 1,000,000: just under Kafka's limit of 1 MiB. */
  readonly maxMessageBytes?: number;
  /**
   * Says what the situation adds to each message: tenant, correlation id, headers. The trace of the active
   * OpenTelemetry span and the context of the message being handled are taken over by themselves.
   */
  readonly context?: ContextProvider;
  /**
   * For apps that keep transactions with another library, such as typeorm-transactional: the manager of the
   * transaction around the calling code, if there is one. Events are then written just before its commit.
   */
  readonly ambientManager?: () => EntityManager | undefined;
  /**
   * Publishes messages as CloudEvents 1.0 in binary mode instead of in the format of Debezium's outbox router; whoever
   * emits and whoever relays must say the same. Consumers read both. Default: none.
   */
  readonly cloudEvents?: CloudEventsOptions;
  readonly relay?: RelayOptions;
  /**
   * How long rows are kept. On by default: sent messages for 7 days, what consumers have handled for 14, dead messages
   * for ever. `false`: this process takes nothing away.
   */
  readonly retention?: RetentionOptions | false;
  /** How all consumers handle failures and copies; `@IdempotentConsumer` can say otherwise for one. */
  readonly consume?: SharedConsumeOptions;
  /** Where figures go: `prometheusMetrics()` or `openTelemetryMetrics()`. Default: nowhere, at no cost. */
  readonly metrics?: OutboxMetrics;
  /** Where spans of publishing and consuming go: `openTelemetryTracing()`. Default: nowhere; traces travel all the same. */
  readonly tracing?: OutboxTracing;
}

export interface OutboxModuleAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** Name of the data source, as given to `TypeOrmModule`. Default `default`. */
  readonly dataSource?: string;
  readonly inject?: (InjectionToken | OptionalFactoryDependency)[];
  readonly useFactory: (
    ...args: never[]
  ) => Omit<OutboxModuleOptions, 'dataSource'> | Promise<Omit<OutboxModuleOptions, 'dataSource'>>;
}

/** The options, complete and checked. */
export interface ResolvedOptions {
  readonly publisher: PublisherFactory;
  readonly tables: TableNames;
  readonly lanes: number;
  readonly createTables: boolean;
  readonly order: Order;
  readonly maxMessageBytes: number;
  readonly context: ContextProvider | undefined;
  readonly ambientManager: (() => EntityManager | undefined) | undefined;
  readonly cloudEvents: CloudEventsOptions | undefined;
  readonly relay: Required<RelayOptions>;
  readonly consume: SharedConsumeOptions;
  readonly retention: Retention;
  /** Whether this process cleans. */
  readonly cleans: boolean;
  readonly metrics: OutboxMetrics | undefined;
  readonly tracing: OutboxTracing | undefined;
}

const OPTIONS: Record<keyof OutboxModuleOptions, true> = {
  dataSource: true,
  publisher: true,
  tables: true,
  lanes: true,
  createTables: true,
  order: true,
  maxMessageBytes: true,
  context: true,
  ambientManager: true,
  cloudEvents: true,
  relay: true,
  consume: true,
  retention: true,
  metrics: true,
  tracing: true,
};

/** @throws OutboxOptionsError naming the option */
export function resolveOptions(options: OutboxModuleOptions): ResolvedOptions {
  // From JavaScript, or from a factory, anything may come.
  if (typeof options !== 'object' || options === null) throw new OutboxOptionsError('OutboxModule needs its options.');
  assertKnown(options, OPTIONS, '');
  if (typeof options.publisher !== 'function') {
    const what = options.publisher === undefined ? 'is missing' : 'must be a function that makes publishers';
    throw new OutboxOptionsError(`publisher ${what}: give kafkaPublisher({ … }), or broker.publisher() of a broker in memory.`);
  }
  const { createTables = false, order = 'commit', maxMessageBytes = 1_000_000 } = options;
  if (typeof createTables !== 'boolean') throw new OutboxOptionsError('createTables must be true or false.');
  if (order !== 'commit' && order !== 'none') throw new OutboxOptionsError('order must be "commit" or "none".');
  assertWhole('maxMessageBytes', maxMessageBytes, 1);
  if (order === 'commit' && options.publisher.capabilities?.order === false) {
    throw new OutboxOptionsError("The publisher's broker keeps no order of the messages of a key: say so with order: 'none'.");
  }
  return {
    publisher: options.publisher,
    tables: tableNames(options),
    lanes: laneCount(options),
    createTables,
    order,
    maxMessageBytes,
    context: optionalFunction('context', options.context),
    ambientManager: optionalFunction('ambientManager', options.ambientManager),
    cloudEvents: checkCloudEvents(options.cloudEvents),
    relay: resolveRelay(options.relay ?? {}),
    consume: resolveConsume(options.consume ?? {}),
    retention: retentionOf(DEFAULT_RETENTION, options.retention === false ? {} : (options.retention ?? {})),
    cleans: options.retention !== false,
    metrics: resolveMetrics(options.metrics),
    tracing: resolveTracing(options.tracing),
  };
}

function resolveMetrics(metrics: OutboxMetrics | undefined): OutboxMetrics | undefined {
  if (metrics !== undefined && (typeof metrics?.record !== 'function' || typeof metrics.observe !== 'function')) {
    throw new OutboxOptionsError('metrics must be what prometheusMetrics({ … }) or openTelemetryMetrics() gives.');
  }
  return metrics;
}

function resolveTracing(tracing: OutboxTracing | undefined): OutboxTracing | undefined {
  if (tracing !== undefined && (typeof tracing?.published !== 'function' || typeof tracing.consume !== 'function')) {
    throw new OutboxOptionsError('tracing must be what openTelemetryTracing({ … }) gives.');
  }
  return tracing;
}

function resolveRelay(options: RelayOptions): Required<RelayOptions> {
  assertKnown(options, DEFAULT_RELAY_OPTIONS, 'relay.');
  const relay = { ...DEFAULT_RELAY_OPTIONS, ...options };
  checkRelayOptions(relay);
  return relay;
}

const CONSUME_OPTIONS: Record<keyof SharedConsumeOptions, true> = {
  retry: true,
  isRetryable: true,
  onExhausted: true,
  concurrentCopies: true,
  missingMessageId: true,
  redis: true,
};

function resolveConsume(options: SharedConsumeOptions): SharedConsumeOptions {
  assertKnown(options, CONSUME_OPTIONS, 'consume.');
  assertConsumeOptions(options, 'consume.');
  if (options.redis !== undefined && typeof options.redis?.run !== 'function') {
    throw new OutboxOptionsError('consume.redis must be what redisDedupe({ … }) gives.');
  }
  return options;
}

function optionalFunction<T>(name: string, value: T | undefined): T | undefined {
  if (value !== undefined && typeof value !== 'function') throw new OutboxOptionsError(`${name} must be a function.`);
  return value;
}

function assertWhole(name: string, value: unknown, least: number): void {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least) {
    throw new OutboxOptionsError(`${name} must be a whole number of at least ${least}, not ${String(value)}.`);
  }
}
