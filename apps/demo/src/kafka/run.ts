import type { DataSource } from 'typeorm';
import { dataSource as shopDataSource } from '../../../../ormconfig.js';
import { createTopics } from '../../../shop/src/create-topics.js';
import { Topics } from '../../../shop/src/topics.js';
import type { Checklist } from '../checklist.js';
import type { Narrator } from '../narrator.js';
import { waitUntil } from '../wait-until.js';
import { answers, AppProcess, freePort } from './app-process.js';
import { Auditor } from './auditor.js';
import { consumerLag } from './consumer-lag.js';
import { type Answers, customersOrder } from './customers.js';
import { compare } from './verdict.js';
import type { World } from './world.js';

const ORDERS = 500;
const INVALID = 20;

/** @throws Error when an app ends by itself or something never comes to rest */
export async function playKafkaRun(world: World, narrator: Narrator, checklist: Checklist): Promise<void> {
  const dataSource = await shopDataSource.initialize();
  try {
    await dataSource.runMigrations();
    const run = new KafkaRun(world, dataSource, narrator, checklist);
    try {
      await run.play();
    } finally {
      await run.close();
    }
  } finally {
    await dataSource.destroy();
  }
}

/** One run: apps as processes, customers, a killed relay, repeats by hand, and the comparison at the end. */
class KafkaRun {
  private readonly processes: AppProcess[] = [];
  private readonly auditor: Auditor;

  constructor(
    private readonly world: World,
    private readonly dataSource: DataSource,
    private readonly narrator: Narrator,
    private readonly checklist: Checklist,
  ) {
    this.auditor = new Auditor(world);
  }

  async play(): Promise<void> {
    const ordersUrl = await this.openShop();
    const answers = await this.serveCustomers(ordersUrl);
    await this.settle();
    const relay = this.processes.findLast(({ name }) => name === 'relay');
    this.checklist.check('exit code of the second relay when asked to stop', 0, (await relay?.stop()) ?? 'none');
    this.checklist.check('orders accepted over HTTP', ORDERS, answers.accepted);
    this.checklist.check('invalid orders answered with 400', INVALID, answers.turnedAway);
    this.checklist.check('other answers', 0, answers.unexpected.length);
    this.checklist.check('messages sent again by hand', ORDERS / 10, this.auditor.resent);
    await compare(this.checklist, this.dataSource, this.auditor);
  }

  async close(): Promise<void> {
    await Promise.all(this.processes.map((app) => app.stop()));
    await this.auditor.stop();
  }

  private async openShop(): Promise<string> {
    const [orders, inventory] = [await freePort(), await freePort()];
    await createTopics('demo', this.world.brokers);
    await this.auditor.start();
    this.spawn('orders', { PORT: String(orders) });
    this.spawn('inventory', { PORT: String(inventory) });
    this.spawn('relay');
    const ordersUrl = `http://127.0.0.1:${orders}`;
    await this.guarded(Promise.all([answers(`${ordersUrl}/health`), answers(`http://127.0.0.1:${inventory}/health`)]));
    return ordersUrl;
  }

  /** Halfway the relay is killed, and another takes over while customers go on ordering. */
  private async serveCustomers(url: string): Promise<Answers> {
    this.narrator.say(`${ORDERS} orders come in over HTTP, and ${INVALID} that make no sense.`);
    let takeover: Promise<void> | undefined;
    const answers = await this.guarded(
      customersOrder({
        url,
        orders: ORDERS,
        onAccepted: (accepted) => {
          if (accepted === ORDERS / 2) takeover = this.killRelay();
        },
      }),
    );
    await takeover;
    return answers;
  }

  private async killRelay(): Promise<void> {
    const relay = this.processes.find(({ name }) => name === 'relay');
    await relay?.kill();
    this.checklist.check('signal that ended the first relay', 'SIGKILL', relay?.endedBy ?? 'none');
    this.narrator.say(`Halfway, the relay (process ${relay?.pid}) is killed with SIGKILL; another takes over.`);
    this.spawn('relay');
  }

  /** Until nothing waits anywhere: in the outbox, before inventory, before the auditor. */
  private async settle(): Promise<void> {
    this.narrator.say('All orders are in. Waiting until every message is sent and handled.');
    const admin = this.world.kafka('demo-watcher').admin();
    await admin.connect();
    const done = async (): Promise<boolean> => {
      const [row] = await this.dataSource.query<{ count: string }[]>('SELECT COUNT(*) AS count FROM outbox_pending');
      if (Number(row?.count) > 0) return false;
      const { topicPrefix } = this.world;
      const lags = await Promise.all([
        // Nest puts a postfix to the group ids of servers.
        consumerLag(admin, `${topicPrefix}inventory-server`, Topics.orders),
        consumerLag(admin, `${topicPrefix}auditor`, Topics.orders),
        consumerLag(admin, `${topicPrefix}auditor`, Topics.stock),
      ]);
      return lags.every((lag) => lag === 0);
    };
    try {
      // What inventory emitted last may reach the outbox between two looks: it must be quiet twice.
      await this.guarded(waitUntil('all is quiet', async () => (await done()) && (await done()), { limit: 60_000, pause: 200 }));
    } finally {
      await admin.disconnect();
    }
  }

  private spawn(name: AppProcess['name'], variables: Readonly<Record<string, string>> = {}): void {
    this.processes.push(new AppProcess(name, { ...this.world.variables, OUTBOX_RELAY: 'off', ...variables }));
  }

  /** Work that fails when an app ends by itself. */
  private guarded<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, ...this.processes.map(({ failure }) => failure)]);
  }
}
