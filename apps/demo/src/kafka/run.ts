import { once } from 'node:events';
import type { DataSource } from 'typeorm';
import { dataSource as shopDataSource } from '../../../../ormconfig.js';
import { createTopics } from '../../../shop/src/create-topics.js';
import type { Checklist } from '../checklist.js';
import type { Narrator } from '../narrator.js';
import { answers, AppProcess, freePort } from './app-process.js';
import { Auditor } from './auditor.js';
import { type Answers, customersOrder } from './customers.js';
import { Rest } from './rest.js';
import { compare } from './verdict.js';
import type { World } from './world.js';

const ORDERS = 500;
const INVALID = 20;
/** Orders between two lines of progress. */
const PROGRESS = 100;

export interface RunContext {
  readonly world: World;
  readonly narrator: Narrator;
  readonly checklist: Checklist;
  /** Ends the run early. */
  readonly signal: AbortSignal;
}

/** @throws Error when an app ends by itself, something never comes to rest, or the signal ends the run */
export async function playKafkaRun(context: RunContext): Promise<void> {
  const dataSource = await shopDataSource.initialize();
  try {
    await dataSource.runMigrations();
    const run = new KafkaRun(context, dataSource);
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
  /** Aborted when an app ends by itself or the run is interrupted, with the reason; and when it is over. */
  private readonly end = new AbortController();

  constructor(
    private readonly context: RunContext,
    private readonly dataSource: DataSource,
  ) {
    this.auditor = new Auditor(context.world);
    context.signal.addEventListener('abort', () => this.end.abort(new Error('Interrupted.')));
  }

  async play(): Promise<void> {
    const { signal } = this.end;
    const ended = once(signal, 'abort').then(() => signal.throwIfAborted());
    try {
      await Promise.race([this.playOut(), ended]);
    } catch (error) {
      if (this.context.signal.aborted) throw error;
      for (const app of this.processes) this.context.narrator.line(`\n${app.lastWords}`);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.end.abort();
    await Promise.all(this.processes.map((app) => app.stop()));
    await this.auditor.stop();
  }

  private async playOut(): Promise<void> {
    const { narrator, checklist } = this.context;
    const ordersUrl = await this.openShop();
    narrator.say(`${ORDERS} orders come in over HTTP, and ${INVALID} that make no sense.`);
    const { accepted, turnedAway, unexpected } = await this.serveCustomers(ordersUrl);
    narrator.say('All orders are in. Waiting until every message is sent and handled.');
    await this.settle();
    const relay = this.processes.findLast(({ name }) => name === 'relay');
    checklist.check('exit code of the second relay when asked to stop', 0, (await relay?.stop()) ?? 'none');
    checklist.check('orders accepted over HTTP', ORDERS, accepted);
    checklist.check('invalid orders answered with 400', INVALID, turnedAway);
    checklist.check('other answers', 0, unexpected.length);
    checklist.check('messages sent again by hand', ORDERS / 10, this.auditor.resent);
    await compare(checklist, this.dataSource, this.auditor);
    const repeats = this.auditor.orders.length - accepted;
    narrator.say(
      `The topic holds ${accepted} orders and ${repeats} repeats: ${this.auditor.resent} sent by hand, ` +
        `${repeats - this.auditor.resent} left by the relay that was killed.`,
    );
  }

  private async openShop(): Promise<string> {
    const [orders, inventory] = [await freePort(), await freePort()];
    await createTopics('demo', this.context.world.brokers);
    await this.auditor.start();
    this.spawn('orders', { PORT: String(orders) });
    this.spawn('inventory', { PORT: String(inventory) });
    this.spawn('relay');
    const ordersUrl = `http://127.0.0.1:${orders}`;
    await Promise.all([answers(`${ordersUrl}/health`), answers(`http://127.0.0.1:${inventory}/health`)]);
    return ordersUrl;
  }

  /** Halfway the relay is killed, and another takes over while customers go on ordering. */
  private serveCustomers(url: string): Promise<Answers> {
    const onAccepted = async (accepted: number): Promise<void> => {
      if (accepted % PROGRESS === 0) this.context.narrator.say(`${accepted} orders accepted.`);
      if (accepted === ORDERS / 2) await this.replaceRelay();
    };
    return customersOrder({ url, orders: ORDERS, onAccepted, signal: this.end.signal });
  }

  private async replaceRelay(): Promise<void> {
    const relay = this.processes.find(({ name }) => name === 'relay');
    await relay?.kill();
    this.context.checklist.check('signal that ended the first relay', 'SIGKILL', relay?.endedBy ?? 'none');
    this.context.narrator.say(`Halfway, the relay (process ${relay?.pid}) is killed with SIGKILL; another takes over.`);
    this.spawn('relay');
  }

  private async settle(): Promise<void> {
    const rest = await Rest.open(this.context.world, this.dataSource);
    try {
      await rest.reached();
    } finally {
      await rest.close();
    }
  }

  private spawn(name: AppProcess['name'], variables: Readonly<Record<string, string>> = {}): void {
    // What is started after the end would outlive the demo.
    this.end.signal.throwIfAborted();
    const app = new AppProcess(name, { ...this.context.world.variables, OUTBOX_RELAY: 'off', ...variables });
    app.onFailure((error) => this.end.abort(error));
    this.processes.push(app);
  }
}
