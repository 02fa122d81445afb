import { type Connection, inTransaction } from '../store/connection';
import { findLost } from '../store/message-state';
import type { OutboxStore } from '../store/outbox-store';
import { type SettleMode, sweep } from '../store/sweep';

/** Milliseconds from a settled batch to the look that brings the log up to date. */
const DELAY = 500;
/** Milliseconds between looks for what other processes have left behind. */
const IDLE_DELAY = 10_000;
/** For so many times as long as it has worked it rests. */
const REST: Readonly<Record<Load, number>> = { idle: 0.1, working: 1, behind: 3 };
/** Milliseconds: much less than the server lets a connection be silent. */
const LONGEST_REST = 1000;
/** Ids of the log that one look checks for lost messages. */
const CHECKED = 2000;

/** What the relay is doing: `behind` when it finds as much as it can take. */
export type Load = 'idle' | 'working' | 'behind';

export interface SweeperHost {
  readonly store: OutboxStore;
  readonly mode: SettleMode;
  load(): Load;
  open(): Promise<Connection>;
  onLost(ids: readonly string[]): void;
  onFailure(error: unknown): void;
}

/** Brings the log up to date behind the relay, and looks for messages that are in no state. */
export class Sweeper {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;
  private lastRun = Number.NEGATIVE_INFINITY;
  private stopping = false;
  private checkedTo = '0';
  private suspects: ReadonlySet<string> = new Set();

  constructor(private readonly host: SweeperHost) {}

  start(): void {
    this.stopping = false;
  }

  /** Something was settled, here. */
  soon(): void {
    if (this.timer || this.stopping) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.run();
    }, DELAY);
    this.timer.unref();
  }

  /** Called from time to time. */
  poll(): void {
    if (performance.now() - this.lastRun >= IDLE_DELAY) this.run();
  }

  async stop(): Promise<void> {
    this.stopping = true;
    clearTimeout(this.timer);
    this.timer = undefined;
    await this.running;
  }

  private run(): void {
    if (this.running || this.stopping) return;
    this.lastRun = performance.now();
    this.running = this.work().finally(() => {
      this.running = undefined;
    });
  }

  private async work(): Promise<void> {
    let connection: Connection | undefined;
    try {
      connection = await this.host.open();
      while (!this.stopping && (await this.step(connection)) > 0);
      if (!this.stopping) await this.check(connection);
    } catch (error) {
      this.host.onFailure(error);
      // What is left is done with the next batch, or the next look.
    } finally {
      await connection?.close();
    }
  }

  /** The relay goes first, unless very much is left to do. */
  private async step(connection: Connection): Promise<number> {
    const { store, mode } = this.host;
    const begun = performance.now();
    const { messages, isMuchLeft } = await inTransaction(connection, () => sweep(connection, store.dialect, mode));
    const worked = performance.now() - begun;
    const load = this.host.load();
    const rest = REST[load === 'behind' && isMuchLeft ? 'working' : load];
    if (messages > 0) await new Promise((resolve) => setTimeout(resolve, Math.min(worked * rest, LONGEST_REST)));
    return messages;
  }

  private async check(connection: Connection): Promise<void> {
    const { dialect, lanes } = this.host.store;
    const { lost, next } = await findLost(connection, dialect, lanes, this.checkedTo, CHECKED);
    const certain = lost.filter((id) => this.suspects.has(id));
    if (certain.length > 0) this.host.onLost(certain);
    // A stretch with suspects is looked at once more before they are called lost.
    const again = lost.length > certain.length;
    this.suspects = again ? new Set(lost) : new Set();
    if (!again) this.checkedTo = next ?? '0';
  }
}
