import { type Admin, Kafka, type KafkaConfig, logLevel } from 'kafkajs';
import { type TopicAdmin, TOPIC_PATIENCE } from '../kafka/topic-creation';
import type { TopicSpec } from '../topic-spec';
import { rootOf } from './explain';

/** As many as Kafka's protocol takes for "as the broker has it". */
const BY_DEFAULT = -1;
/** A second try may go to another broker; the relay tries again anyway. */
const RETRY = { initialRetryTime: 50, maxRetryTime: 500, retries: 2 };

/** Creates topics through kafkajs. */
export class KafkaJsTopicAdmin implements TopicAdmin {
  private constructor(private readonly admin: Admin) {}

  static async open(client: KafkaConfig): Promise<KafkaJsTopicAdmin> {
    const admin = new KafkaJsTopicAdmin(
      new Kafka({ requestTimeout: TOPIC_PATIENCE, ...client, logLevel: logLevel.NOTHING, retry: RETRY }).admin(),
    );
    try {
      await admin.admin.connect();
      return admin;
    } catch (error) {
      await admin.close();
      throw error;
    }
  }

  names(): Promise<string[]> {
    return this.admin.listTopics();
  }

  async create({ topic, partitions, replicationFactor, config }: TopicSpec): Promise<boolean> {
    try {
      return await this.admin.createTopics({
        topics: [
          {
            topic,
            numPartitions: partitions ?? BY_DEFAULT,
            replicationFactor: replicationFactor ?? BY_DEFAULT,
            configEntries: Object.entries(config ?? {}).map(([name, value]) => ({ name, value })),
          },
        ],
        waitForLeaders: false,
        timeout: TOPIC_PATIENCE,
      });
    } catch (error) {
      throw innermost(error);
    }
  }

  async leaders(names: readonly string[]): Promise<Map<string, number[]>> {
    const { topics } = await this.admin.fetchTopicMetadata({ topics: [...names] });
    return new Map(topics.map(({ name, partitions }) => [name, partitions.map(({ leader }) => leader)]));
  }

  async close(): Promise<void> {
    await this.admin.disconnect().catch(() => undefined);
  }
}

/** kafkajs packs the errors of several topics into one. */
function innermost(error: unknown): unknown {
  const root = rootOf(error) as { errors?: unknown };
  return Array.isArray(root.errors) && root.errors.length > 0 ? root.errors[0] : error;
}
