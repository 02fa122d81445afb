import { randomBytes } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { createConnection } from 'mysql2/promise';

/** A database and topics of one run, so that what the servers hold already is neither seen nor touched. */
export class World {
  private readonly database: string;
  readonly topicPrefix: string;
  readonly databaseUrl: string;

  constructor(
    private readonly serverUrl: string,
    readonly brokers: readonly string[],
  ) {
    const name = randomBytes(4).toString('hex');
    this.database = `demo_${name}`;
    this.topicPrefix = `demo-${name}-`;
    const url = new URL(serverUrl);
    url.pathname = `/${this.database}`;
    this.databaseUrl = url.href;
  }

  /** What every app of this run finds in its environment. */
  get variables(): Record<string, string> {
    return {
      DATABASE_URL: this.databaseUrl,
      KAFKA_BROKERS: this.brokers.join(','),
      TOPIC_PREFIX: this.topicPrefix,
      NO_COLOR: '1',
    };
  }

  async create(): Promise<void> {
    await this.onServer(`CREATE DATABASE ${this.database}`);
  }

  /** Leaves the servers as they were. */
  async remove(): Promise<void> {
    await this.onServer(`DROP DATABASE IF EXISTS ${this.database}`);
    const admin = this.kafka('demo-cleaner').admin();
    await admin.connect();
    try {
      const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(this.topicPrefix));
      if (topics.length > 0) await admin.deleteTopics({ topics });
      const { groups } = await admin.listGroups();
      const ours = groups.map(({ groupId }) => groupId).filter((group) => group.startsWith(this.topicPrefix));
      if (ours.length > 0) await admin.deleteGroups(ours);
    } finally {
      await admin.disconnect();
    }
  }

  kafka(clientId: string): Kafka {
    // Its errors are thrown as well; as log lines they would only tear the report apart.
    return new Kafka({ clientId, brokers: [...this.brokers], logLevel: logLevel.NOTHING });
  }

  private async onServer(statement: string): Promise<void> {
    const connection = await createConnection(this.serverUrl);
    try {
      await connection.query(statement);
    } finally {
      await connection.end();
    }
  }
}
