import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { RelayOptions, RetentionOptions } from 'nestjs-transactional-outbox';
import type { DataSourceOptions } from 'typeorm';
import type { ClientName } from './arguments.js';

export interface RelayConfig {
  readonly database: DataSourceOptions;
  readonly brokers: readonly string[];
  readonly client: ClientName;
  readonly lanes?: number | undefined;
  readonly relay: Pick<RelayOptions, 'settle' | 'concurrency'>;
  /** Default: nothing leaves the log unless it is purged. */
  readonly retention?: RetentionOptions;
}

export type RelayTask =
  | { readonly type: 'start' }
  | { readonly type: 'stop' }
  | { readonly type: 'count' }
  | { readonly type: 'look' }
  | { readonly type: 'purge' }
  | { readonly type: 'end' };

/** A batch that was settled, and when, by the clock that all processes share; and when its process began to claim. */
export interface Settled {
  readonly messages: number;
  readonly begun: number;
  readonly at: number;
}

/** Milliseconds of a batch on average in each stage, and the processor cores that the process used. */
export interface Stages {
  readonly claimMs: number;
  readonly publishMs: number;
  readonly settleMs: number;
  readonly cores: number;
}

export type RelayReport =
  | { readonly type: 'ready' }
  | ({ readonly type: 'settled' } & Settled)
  | ({ readonly type: 'counted' } & Stages)
  | { readonly type: 'stopped' }
  | { readonly type: 'purged' }
  | { readonly type: 'seen'; readonly claims: readonly number[]; readonly rss: number; readonly heap: number };

type Report<T extends RelayReport['type']> = Extract<RelayReport, { type: T }>;

/** The relay's process, as whoever measures sees it. */
export class RelayProcess {
  private constructor(private readonly child: ChildProcess) {}

  static async open(config: RelayConfig): Promise<RelayProcess> {
    const child = fork(fileURLToPath(new URL('./relay-child.js', import.meta.url)), {
      env: { ...process.env, BENCH_RELAY: JSON.stringify(config) },
      // To see what memory is in use without the garbage.
      execArgv: ['--expose-gc'],
      // What it logs must not come between the lines of the result.
      stdio: ['ignore', 2, 2, 'ipc'],
    });
    const relay = new RelayProcess(child);
    await relay.expect('ready');
    return relay;
  }

  /** Relays until it is stopped, and tells of each batch until it is asked for the count. Rejects when the process ends before. */
  async start(onSettled: (settled: Settled) => void): Promise<Stages> {
    const { child } = this;
    const onMessage = (report: RelayReport): void => {
      if (report.type === 'settled') onSettled(report);
    };
    const counted = this.expect('counted');
    child.on('message', onMessage);
    this.tell({ type: 'start' });
    return counted.finally(() => child.off('message', onMessage));
  }

  /** Enough is settled: has `start` resolve. It goes on relaying. */
  count(): void {
    this.tell({ type: 'count' });
  }

  async stop(): Promise<void> {
    const stopped = this.expect('stopped');
    this.tell({ type: 'stop' });
    await stopped;
  }

  /** Has the cleaner take away all that was sent. */
  async purge(): Promise<void> {
    const purged = this.expect('purged');
    this.tell({ type: 'purge' });
    await purged;
  }

  /** Since the last look: how long each claim took, in ms, and the median of the process's memory; and what it has in use now, in bytes. */
  async look(): Promise<Report<'seen'>> {
    const seen = this.expect('seen');
    this.tell({ type: 'look' });
    return seen;
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const gone = once(this.child, 'exit');
    this.tell({ type: 'end' });
    await gone;
  }

  private tell(task: RelayTask): void {
    this.child.send(task);
  }

  private expect<T extends RelayReport['type']>(type: T): Promise<Report<T>> {
    const { child } = this;
    return new Promise((resolve, reject) => {
      const onMessage = (report: RelayReport): void => {
        if (report.type !== type) return;
        end();
        resolve(report as Report<T>);
      };
      const onExit = (code: number | null): void => {
        end();
        reject(new Error(`The relay's process ended with ${code ?? 'a signal'} before it was ${type}.`));
      };
      const end = (): void => {
        child.off('message', onMessage);
        child.off('exit', onExit);
      };
      child.on('message', onMessage);
      child.once('exit', onExit);
    });
  }
}
