import type { Logger } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { TopicRefusedError } from '../../errors';
import type { PublishFailure } from '../publisher';
import type { TopicSpec } from '../topic-spec';

/** Milliseconds that one request about topics may take, and that new topics have to get their leaders. */
export const TOPIC_PATIENCE = 3_000;

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

/** What a client can do about topics. */
export interface TopicAdmin {
  /** The topics that exist. */
  names(): Promise<readonly string[]>;
  /** False: it exists by now. Rejects as the client does. */
  create(spec: TopicSpec): Promise<boolean>;
  /** Of each topic the leaders of its partitions, below 0 where there is none. */
  leaders(topics: readonly string[]): Promise<ReadonlyMap<string, readonly number[]>>;
  /** Gives the connections back. */
  close(): Promise<void>;
}

/** A client's way to the topics. */
export interface TopicClient {
  openAdmin(): Promise<TopicAdmin>;
  explain(error: unknown): PublishFailure;
}

/** Creates the topics that an app asks for, once for all its workers. */
export class TopicCreation {
  private creating: Promise<void> | null = null;

  constructor(
    private readonly topics: readonly TopicSpec[],
    private readonly client: TopicClient,
    private readonly logger: Logger,
  ) {}

  /**
   * Creates those that do not exist. Once it has succeeded, or was refused, it is not done again.
   *
   * @throws TopicRefusedError when the brokers will not have one; any other error when they could not be asked
   */
  async ensure(): Promise<void> {
    if (this.topics.length === 0) return;
    const creating = (this.creating ??= this.create());
    try {
      await creating;
    } catch (error) {
      if (!(error instanceof TopicRefusedError) && this.creating === creating) this.creating = null;
      throw error;
    }
  }

  private async create(): Promise<void> {
    const admin = await this.client.openAdmin();
    try {
      const there = new Set(await admin.names());
      await this.createMissing(admin, this.topics.filter(({ topic }) => !there.has(topic)));
      await this.compare(admin, this.topics.filter(({ topic }) => there.has(topic)));
    } finally {
      await admin.close();
    }
  }

  private async createMissing(admin: TopicAdmin, specs: readonly TopicSpec[]): Promise<void> {
    const refusals: string[] = [];
    const created: string[] = [];
    // One by one: an answer to several names the topics that failed, and not all clients pass it on.
    for (const spec of specs) {
      try {
        if (await admin.create(spec)) created.push(spec.topic);
      } catch (error) {
        const { code, message } = this.client.explain(error);
        if (!REFUSALS.has(code)) throw error;
        refusals.push(`${spec.topic} (${code}: ${message})`);
      }
    }
    if (created.length > 0) this.logger.log(`Created the topics ${created.join(', ')}`);
    await untilLed(admin, created);
    if (refusals.length === 0) return;
    const error = new TopicRefusedError(`Kafka does not create ${refusals.join(', ')}. Mend \`topics\`, or create them by hand.`);
    this.logger.error(error.message);
    throw error;
  }

  private async compare(admin: TopicAdmin, specs: readonly TopicSpec[]): Promise<void> {
    const wanted = new Map(specs.flatMap(({ topic, partitions }) => (partitions === undefined ? [] : [[topic, partitions] as const])));
    if (wanted.size === 0) return;
    for (const [topic, { length }] of await admin.leaders([...wanted.keys()])) {
      const asked = wanted.get(topic) ?? 0;
      if (length >= asked) continue;
      this.logger.warn(
        `The topic ${topic} has ${length} partitions, not ${asked} as asked for. It is left as it is: more ` +
          'partitions would move keys, which then have no common order.',
      );
    }
  }
}

/** What was created is known to all brokers a moment later; where it takes longer, the first messages wait. */
async function untilLed(admin: TopicAdmin, topics: readonly string[]): Promise<void> {
  if (topics.length === 0) return;
  const end = performance.now() + TOPIC_PATIENCE;
  const led = () =>
    admin.leaders(topics).then(
      (leaders) => topics.every((topic) => leaders.get(topic)?.every((leader) => leader >= 0)),
      () => false,
    );
  while (!(await led()) && performance.now() < end) await sleep(50);
}
