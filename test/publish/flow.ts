import { Outbox, OutboxHealth, type OutboxModuleOptions, type PublisherFactory, type RawMessage, Relay, type RelayOptions, TransactionRunner } from 'nestjs-transactional-outbox';
import type { ReadRecord } from 'nestjs-transactional-outbox/publisher-acceptance';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../consume/until';
import { startApp, type TestApp } from '../setup/app';
import type { DatabaseName } from '../setup/databases';
import type { KafkaBroker } from './kafka-broker';

const KEYS = Array.from({ length: 8 }, (_, n) => `k${n}`);
/** A broker that comes back on a busy machine takes its time. */
const PATIENCE = 120_000;
const QUICK: RelayOptions = { enabled: true, pollInterval: 100, retryDelay: 200, maxRetryDelay: 1_000, publishTimeout: 2_000, sessionTimeout: 10_000 };

/** Where a publisher said that a message is. */
interface Acknowledged {
  readonly messageId: string;
  readonly topic: string;
  readonly partition: number;
  readonly offset: string | null;
}

/** An app that commits numbered messages, each round one of each key to each topic, and what became of them. */
export class Flow {
  private acknowledged: Acknowledged[] = [];
  /** Rounds that have committed. */
  rounds = 0;
  private running: Promise<void> | null = null;
  private stopping = false;

  private readonly apps: TestApp[] = [];

  private constructor(
    private readonly database: DatabaseName,
    private readonly outbox: Partial<OutboxModuleOptions>,
    readonly topics: readonly string[],
  ) {}

  static async start(
    database: DatabaseName,
    publisher: PublisherFactory,
    topics: readonly string[],
    { relay, ...outbox }: Partial<OutboxModuleOptions> = {},
  ): Promise<Flow> {
    const flow = new Flow(database, { publisher, relay: { ...QUICK, ...relay }, ...outbox }, topics);
    await flow.startApp();
    return flow;
  }

  /** Starts an app, after another one on the database of that. */
  async startApp(relay: RelayOptions = {}): Promise<void> {
    const [first] = this.apps;
    const outbox = { ...this.outbox, relay: { ...this.outbox.relay, ...relay } };
    const dataSource = first === undefined ? {} : { database: first.dataSource.options.database };
    this.apps.push(await startApp(this.database, { outbox, dataSource }));
    this.relay.on('published', ({ messages, outcomes }) => {
      outcomes.forEach((outcome, index) => {
        const message = messages[index];
        if (outcome.status !== 'acknowledged' || message === undefined) return;
        const { partition, offset } = outcome;
        this.acknowledged.push({ messageId: message.messageId, topic: message.topic, partition, offset });
      });
    });
  }

  /** Ends the app as it is told to by a signal; its database stays. */
  stopApp(): Promise<void> {
    return this.testApp.app.close();
  }

  private get testApp(): TestApp {
    const last = this.apps.at(-1);
    if (last === undefined) throw new Error('no app was started');
    return last;
  }

  get health(): OutboxHealth {
    return this.testApp.app.get(OutboxHealth);
  }

  get relay(): Relay {
    return this.testApp.app.get(Relay);
  }

  /** Commits one round. */
  async round(): Promise<void> {
    const payload = `${this.rounds}`;
    await this.emit(this.topics.flatMap((topic) => KEYS.map((key) => ({ topic, type: 'counted', key, payload }))));
    this.rounds += 1;
  }

  emit(messages: readonly RawMessage[]): Promise<void> {
    const { app } = this.testApp;
    return app.get(TransactionRunner).run(async () => app.get(Outbox).emitRaw(messages));
  }

  /** Commits round after round until `pause`. */
  go(): void {
    this.stopping = false;
    this.running = (async () => {
      while (!this.stopping) {
        await this.round();
        await sleep(20);
      }
    })();
  }

  async pause(): Promise<void> {
    this.stopping = true;
    await this.running;
  }

  /** Waits until so many more messages were acknowledged on the topic. */
  async advanced(topic: string, by = 40): Promise<void> {
    const count = () => this.acknowledged.filter((one) => one.topic === topic).length;
    const goal = count() + by;
    await until(`${by} more messages on ${topic}`, () => count() >= goal, PATIENCE);
  }

  /** Waits until all that has committed is settled. */
  async drained(): Promise<void> {
    await this.pause();
    await until('everything is sent', async () => (await this.count('outbox_pending')) + (await this.count('outbox_held')) === 0, PATIENCE);
  }

  async count(table: string, where = '1 = 1'): Promise<number> {
    const rows = (await this.testApp.dataSource.query(`SELECT COUNT(*) AS n FROM ${table} WHERE ${where}`)) as { n: string | number }[];
    return Number(rows[0]?.n);
  }

  /** What was acknowledged until now need not be found any more: its topic is gone. Returns the next round. */
  forget(): number {
    this.acknowledged = [];
    return this.rounds;
  }

  /**
   * What is wrong: a round from `first` on that is missing or out of order in its key, and a message that is not where
   * the publisher said.
   */
  async faults(onlooker: KafkaBroker, { topics = this.topics, first = 0 } = {}): Promise<string[]> {
    const found: string[] = [];
    for (const topic of topics) {
      const records = await onlooker.read(topic);
      const wanted = Array.from({ length: this.rounds - first }, (_, n) => `${first + n}`).join();
      for (const key of KEYS) {
        const values = records.filter((record) => record.key === key && Number(record.value) >= first).map(({ value }) => value);
        if ([...new Set(values)].join() !== wanted) found.push(`${topic} ${key}: ${values.join()}`);
      }
      const places = new Map(records.map((record) => [`${record.partition} ${record.offset}`, idOf(record)]));
      for (const { messageId, partition, offset } of this.acknowledged.filter((one) => one.topic === topic)) {
        const there = places.get(`${partition} ${offset}`);
        if (there !== messageId) found.push(`${topic}: ${messageId} was acknowledged at ${partition}@${offset}, where ${there} is`);
      }
    }
    return found;
  }

  async close(): Promise<void> {
    await this.pause();
    while (this.apps.length > 0) await this.apps.pop()?.close();
  }
}

function idOf({ headers }: ReadRecord): string | undefined {
  return headers.find(([name]) => name === 'id')?.[1];
}
