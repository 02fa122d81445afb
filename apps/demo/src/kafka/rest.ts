import type { Admin } from 'kafkajs';
import type { DataSource } from 'typeorm';
import { Topics } from '../../../shop/src/topics.js';
import { waitUntil } from '../wait-until.js';
import type { World } from './world.js';

const LIMIT = 120_000;

/** Knows when nothing waits anywhere any more: in the outbox, before inventory, before the auditor. */
export class Rest {
  private constructor(
    private readonly topicPrefix: string,
    private readonly dataSource: DataSource,
    private readonly admin: Admin,
  ) {}

  static async open(world: World, dataSource: DataSource): Promise<Rest> {
    const admin = world.kafka('demo-watcher').admin();
    await admin.connect();
    return new Rest(world.topicPrefix, dataSource, admin);
  }

  async reached(): Promise<void> {
    let waiting: Readonly<Record<string, number>> = {};
    let quiet = 0;
    const look = async (): Promise<boolean> => {
      waiting = await this.waiting();
      quiet = Object.values(waiting).every((count) => count === 0) ? quiet + 1 : 0;
      // What inventory emitted last may reach the outbox between two figures of one look.
      return quiet === 2;
    };
    await waitUntil(() => `nothing waits; there wait: ${JSON.stringify(waiting)}`, look, { limit: LIMIT, pause: 200 });
  }

  close(): Promise<void> {
    return this.admin.disconnect();
  }

  private async waiting(): Promise<Readonly<Record<string, number>>> {
    const [row] = await this.dataSource.query<{ count: string }[]>('SELECT COUNT(*) AS count FROM outbox_pending');
    const auditor = `${this.topicPrefix}auditor`;
    return {
      'in the outbox': Number(row?.count),
      // Nest puts a postfix to the group ids of its servers.
      'before inventory': await this.lag(`${this.topicPrefix}inventory-server`, Topics.orders),
      'before the auditor, orders': await this.lag(auditor, Topics.orders),
      'before the auditor, stock': await this.lag(auditor, Topics.stock),
    };
  }

  /** Records of the topic that the group has not taken yet. */
  private async lag(groupId: string, topic: string): Promise<number> {
    const [ends, [committed]] = await Promise.all([
      this.admin.fetchTopicOffsets(topic),
      this.admin.fetchOffsets({ groupId, topics: [topic] }),
    ]);
    const taken = new Map(committed?.partitions.map(({ partition, offset }) => [partition, Number(offset)]));
    // A partition that the group never committed has offset -1.
    return ends.reduce((lag, { partition, high }) => lag + Number(high) - Math.max(0, taken.get(partition) ?? 0), 0);
  }
}
