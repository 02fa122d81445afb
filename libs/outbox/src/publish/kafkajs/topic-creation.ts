import type { Logger } from '@nestjs/common';
import { type Admin, type ITopicConfig, Kafka, logLevel } from 'kafkajs';
import { setTimeout as sleep } from 'node:timers/promises';
import { TopicRefusedError } from '../../errors';
import type { TopicSpec } from '../topic-spec';
import { explain, rootOf } from './explain';
import type { ResolvedKafkaOptions } from './options';

/** Milliseconds that one request about topics may take, and that new topics have to get their leaders. */
const PATIENCE = 3_000;
/** As many as Kafka's protocol takes for "as the broker has it". */
const BY_DEFAULT = -1;
/** A second try may go to another broker; the relay tries again anyway. */
const RETRY = { initialRetryTime: 50, maxRetryTime: 500, retries: 2 };

/** What a broker answers when it will not create a topic, now or later. */
const REFUSALS = new Set([
  'INVALID_TOPIC_EXCEPTION',
  'INVALID_CONFIG',
  'INVALID_PARTITIONS',
  'INVALID_REPLICATION_FACTOR',
  'INVALID_REQUEST',
  'POLICY_VIOLATION',
  'TOPIC_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
  'UNSUPPORTED_VERSION',
]);

/** Creates the topics that an app asks for, once for all its workers. */
export class TopicCreation {
  private creating: Promise<void> | null = null;

  constructor(
    private readonly options: ResolvedKafkaOptions,
    private readonly logger: Logger,
  ) {}

  /**
   * Creates those that do not exist. Once it has succeeded, or was refused, it is not done again.
   *
   * @throws TopicRefusedError when the brokers will not have one; any other error when they could not be asked
   */
  async ensure(): Promise<void> {
    if (this.options.topics.length === 0) return;
    const creating = (this.creating ??= this.create());
    try {
      await creating;
    } catch (error) {
      if (!(error instanceof TopicRefusedError) && this.creating === creating) this.creating = null;
      throw error;
    }
  }

  private async create(): Promise<void> {
    const admin = new Kafka({
      requestTimeout: PATIENCE,
      ...this.options.client,
      logLevel: logLevel.NOTHING,
      retry: RETRY,
    }).admin();
    try {
      await admin.connect();
      const there = new Set(await admin.listTopics());
      const { topics } = this.options;
      await this.createMissing(admin, topics.filter(({ topic }) => !there.has(topic)));
      await this.compare(admin, topics.filter(({ topic }) => there.has(topic)));
    } finally {
      await admin.disconnect().catch(() => undefined);
    }
  }

  private async createMissing(admin: Admin, specs: readonly TopicSpec[]): Promise<void> {
    const refusals: string[] = [];
    const created: string[] = [];
    // One by one: an answer to several names the topics that failed, and not all clients pass it on.
    for (const spec of specs) {
      const failure = await admin
        .createTopics({ topics: [toKafka(spec)], waitForLeaders: false, timeout: PATIENCE })
        .then((isNew) => void (isNew && created.push(spec.topic)), innermost);
      if (failure === undefined) continue;
      const { code, message } = explain(failure);
      if (!REFUSALS.has(code)) throw failure;
      refusals.push(`${spec.topic} (${code}: ${message})`);
    }
    if (created.length > 0) this.logger.log(`Created the topics ${created.join(', ')}`);
    await untilLed(admin, created);
    if (refusals.length === 0) return;
    const error = new TopicRefusedError(`Kafka does not create ${refusals.join(', ')}. Mend \`topics\`, or create them by hand.`);
    this.logger.error(error.message);
    throw error;
  }

  private async compare(admin: Admin, specs: readonly TopicSpec[]): Promise<void> {
    const wanted = new Map(specs.flatMap(({ topic, partitions }) => (partitions === undefined ? [] : [[topic, partitions] as const])));
    if (wanted.size === 0) return;
    const { topics } = await admin.fetchTopicMetadata({ topics: [...wanted.keys()] });
    for (const { name, partitions } of topics) {
      const asked = wanted.get(name) ?? 0;
      if (partitions.length >= asked) continue;
      this.logger.warn(
        `The topic ${name} has ${partitions.length} partitions, not ${asked} as asked for. It is left as it is: more ` +
          'partitions would move keys, which then have no common order.',
      );
    }
  }
}

function toKafka({ topic, partitions, replicationFactor, config }: TopicSpec): ITopicConfig {
  return {
    topic,
    numPartitions: partitions ?? BY_DEFAULT,
    replicationFactor: replicationFactor ?? BY_DEFAULT,
    configEntries: Object.entries(config ?? {}).map(([name, value]) => ({ name, value })),
  };
}

/** What was created is known to all brokers a moment later; where it takes longer, the first messages wait. */
async function untilLed(admin: Admin, topics: string[]): Promise<void> {
  if (topics.length === 0) return;
  const end = performance.now() + PATIENCE;
  const led = () =>
    admin.fetchTopicMetadata({ topics }).then(
      (metadata) => metadata.topics.every(({ partitions }) => partitions.length > 0 && partitions.every(({ leader }) => leader >= 0)),
      () => false,
    );
  while (!(await led()) && performance.now() < end) await sleep(50);
}

/** kafkajs packs the errors of several topics into one. */
function innermost(error: unknown): unknown {
  const root = rootOf(error) as { errors?: unknown };
  return Array.isArray(root.errors) && root.errors.length > 0 ? root.errors[0] : error;
}
