import type { Admin } from '@platformatic/kafka' with { 'resolution-mode': 'import' };
import { type TopicAdmin, TOPIC_PATIENCE } from '../kafka/topic-creation';
import type { TopicSpec } from '../topic-spec';
import { ClientSockets } from './client-sockets';
import { explain } from './explain';
import type { PlatformaticClientOptions } from './options';

/** A second try may go to another broker; the relay tries again anyway. */
const RETRY = { retries: 2, retryDelay: 100 };

/** Creates topics through @platformatic/kafka. */
export class PlatformaticTopicAdmin implements TopicAdmin {
  private readonly sockets: ClientSockets;

  private constructor(private readonly admin: Admin) {
    this.sockets = new ClientSockets(admin, () => admin.close(() => {}));
  }

  static async open(client: PlatformaticClientOptions): Promise<PlatformaticTopicAdmin> {
    const kafka = await import('@platformatic/kafka');
    return new PlatformaticTopicAdmin(
      new kafka.Admin({
        requestTimeout: TOPIC_PATIENCE,
        timeout: TOPIC_PATIENCE,
        ...(client as { clientId: string; bootstrapBrokers: string[] }),
        ...RETRY,
      }),
    );
  }

  names(): Promise<string[]> {
    return this.admin.listTopics();
  }

  async create({ topic, partitions, replicationFactor, config }: TopicSpec): Promise<boolean> {
    try {
      await this.admin.createTopics({
        topics: [topic],
        ...(partitions === undefined ? {} : { partitions }),
        ...(replicationFactor === undefined ? {} : { replicas: replicationFactor }),
        configs: Object.entries(config ?? {}).map(([name, value]) => ({ name, value })),
      });
      return true;
    } catch (error) {
      if (explain(error).code === 'TOPIC_ALREADY_EXISTS') return false;
      throw error;
    }
  }

  async leaders(names: readonly string[]): Promise<Map<string, number[]>> {
    const { topics } = await this.admin.metadata({ topics: [...names], forceUpdate: true });
    return new Map([...topics].map(([name, { partitions }]) => [name, partitions.map(({ leader }) => leader)]));
  }

  async close(): Promise<void> {
    this.sockets.stop();
  }
}
