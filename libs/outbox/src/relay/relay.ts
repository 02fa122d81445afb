import { Logger } from '@nestjs/common';
import type { PublisherFactory } from '../publish/publisher';
import type { ClaimSession } from '../store/claim';
import type { RelayOptions } from './relay-options';
import { RelayWorker, type RelayWorkerHost } from './relay-worker';

/** Opens what the workers of one relay claim through. */
export interface ClaimSessions {
  open(): Promise<ClaimSession>;
  close(): Promise<void>;
}

export interface RelayStatus {
  readonly running: boolean;
  /** What keeps it from publishing, if anything does. */
  readonly trouble: { readonly stage: 'database' | 'broker'; readonly message: string; readonly since: Date } | null;
  /** When a batch was last settled, or a look last found nothing to send. */
  readonly lastSuccessAt: Date | null;
  /** Messages published since the start. */
  readonly published: number;
}

/** Publishes what has been committed, with several workers side by side. */
export class Relay {
  private readonly logger = new Logger('OutboxRelay');
  private workers: RelayWorker[] = [];
  private nextWorker = 0;
  private trouble: RelayStatus['trouble'] = null;
  private lastSuccessAt: Date | null = null;
  private published = 0;

  constructor(
    private readonly sessions: ClaimSessions,
    private readonly createPublisher: PublisherFactory,
    readonly options: Required<RelayOptions>,
  ) {}

  start(): void {
    if (this.workers.length > 0) return;
    const host: RelayWorkerHost = {
      options: this.options,
      openSession: () => this.sessions.open(),
      createPublisher: this.createPublisher,
      onFullClaim: () => this.wake(),
      onSuccess: (sent) => this.succeeded(sent),
      onFailure: (stage, error) => this.failed(stage, error),
    };
    this.workers = Array.from({ length: this.options.concurrency }, () => new RelayWorker(host));
  }

  /** Has a worker look for messages at once. Costs nothing when all are busy. */
  wake(): void {
    const idle = this.workers.find((worker) => worker.isIdle);
    if (idle) {
      idle.wake();
    } else {
      this.workers[this.nextWorker++ % this.workers.length]?.wake();
    }
  }

  /** Takes nothing new, lets the running batches end within `shutdownTimeout`, and closes everything. */
  async stop(): Promise<void> {
    const workers = this.workers.splice(0);
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, this.options.shutdownTimeout, 'late');
    });
    const outcome = await Promise.race([Promise.all(workers.map((worker) => worker.stop())), timeout]);
    clearTimeout(timer);
    if (outcome === 'late') {
      this.logger.warn('A batch did not end within shutdownTimeout; its messages will be sent again.');
    }
    await this.sessions.close();
  }

  status(): RelayStatus {
    return {
      running: this.workers.length > 0,
      trouble: this.trouble,
      lastSuccessAt: this.lastSuccessAt,
      published: this.published,
    };
  }

  private succeeded(sent: number): void {
    if (this.trouble) this.logger.log(`Publishing again; ${this.trouble.message}, since ${this.trouble.since.toISOString()}, is over.`);
    this.trouble = null;
    this.lastSuccessAt = new Date();
    this.published += sent;
  }

  /** Logged when it begins or changes, not with every try. */
  private failed(stage: 'database' | 'broker', error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (this.trouble?.stage === stage && this.trouble.message === message) return;
    this.logger.error(`Cannot publish (${stage}): ${message}. Messages wait, and it is tried again.`);
    this.trouble = { stage, message, since: this.trouble?.since ?? new Date() };
  }
}
