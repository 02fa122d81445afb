import { Logger } from '@nestjs/common';
import { OutboxError } from '../errors';
import type { PublisherFactory } from '../publish/publisher';
import type { Claim } from '../store/claim';
import { toWireRecord, type WireFormat } from '../publish/wire-record';
import type { OutboxStore } from '../store/outbox-store';
import type { ClaimSessions } from './claim-sessions';
import { CommitListener } from './commit-listener';
import { type RelayEventName, type RelayListener, RelayListeners, type RelayStage } from './relay-events';
import type { RelayOptions } from './relay-options';
import { RelayTrouble, type Trouble } from './relay-trouble';
import { RelayWorker, type RelayWorkerHost } from './relay-worker';
import type { RelaySettlement } from './settlement';
import { type Load, Sweeper } from './sweeper';
import { type UnavailableTopic, WaitingTopics } from './waiting-topics';

/** Milliseconds without a message after which `idlePollInterval` counts. */
const IDLE_AFTER = 30_000;
/** Milliseconds after a full claim in which the relay counts as behind. */
const BEHIND_FOR = 1000;

export interface RelayStatus {
  readonly running: boolean;
  /** What keeps it from publishing, if anything does. */
  readonly trouble: Trouble | null;
  /** Topics that do not exist; their messages wait. */
  readonly missingTopics: readonly string[];
  /** Topics that take nothing for another reason, such as too few replicas or a route that is away; their messages wait. */
  readonly unavailableTopics: readonly UnavailableTopic[];
  /** When a batch was last settled, or a look last found nothing to send. */
  readonly lastSuccessAt: Date | null;
  /** Messages published since the start. */
  readonly published: number;
  /** Messages that were found in no state since the start: not pending, held, dead or sent. */
  readonly lost: number;
}

/** Publishes what has been committed, with several workers side by side. */
export class Relay {
  private readonly logger = new Logger('OutboxRelay');
  private readonly listeners = new RelayListeners((error) => this.logger.error('A listener of the relay failed.', stackOf(error)));
  private readonly trouble = new RelayTrouble(this.logger);
  private readonly sweeper: Sweeper;
  private readonly commitListener: CommitListener | undefined;
  private readonly topics = new WaitingTopics(this.logger);
  private readonly lostIds = new Set<string>();
  private workers: RelayWorker[] = [];
  private nextWorker = 0;
  private lastSuccessAt: Date | null = null;
  private published = 0;
  private lastMessageAt = 0;
  private lastPollAt = 0;
  private lastFullClaimAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly sessions: ClaimSessions,
    private readonly createPublisher: PublisherFactory,
    store: OutboxStore,
    readonly options: Required<RelayOptions>,
    private readonly format: WireFormat = toWireRecord,
  ) {
    this.sweeper = new Sweeper({
      store,
      mode: options.settle,
      load: () => this.load(),
      open: () => sessions.openConnection(),
      onLost: (ids) => this.listeners.emit('lost', () => ({ ids })),
      onFailure: (error) => this.failed('database', error),
    });
    const { commitSignal } = store.dialect;
    this.commitListener = commitSignal
      ? new CommitListener({ listen: commitSignal.listen, open: () => sessions.openConnection(), onCommit: () => this.wake() })
      : undefined;
    this.listeners.on('lost', ({ ids }) => this.lost(ids));
  }

  get isRunning(): boolean {
    return this.workers.length > 0;
  }

  /**
   * Has the publisher do what it can do ahead. A broker that is away is no reason not to start.
   *
   * @throws OutboxError that no other try can mend, such as TopicRefusedError
   */
  async prepare(): Promise<void> {
    try {
      await this.createPublisher.prepare?.();
    } catch (error) {
      if (error instanceof OutboxError && !error.retryable) throw error;
      this.failed('broker', error);
    }
  }

  start(): void {
    if (this.isRunning) return;
    const host: RelayWorkerHost = {
      options: this.options,
      listeners: this.listeners,
      createPublisher: this.createPublisher,
      format: this.format,
      openSession: () => this.sessions.openSession(),
      onFullClaim: () => {
        this.lastFullClaimAt = performance.now();
        this.wake();
      },
      onProgress: (messages, settlement) => this.progressed(messages, settlement),
      onBrokerReached: () => this.trouble.over('broker'),
      onFailure: (stage, error) => this.failed(stage, error),
    };
    this.sweeper.start();
    this.commitListener?.start();
    this.workers = Array.from({ length: this.options.concurrency }, () => new RelayWorker(host));
  }

  /**
   * Has the listener called for each event of this kind. It is called inside the loop: it must be quick.
   *
   * @returns what ends the listening
   */
  on<E extends RelayEventName>(event: E, listener: RelayListener<E>): () => void {
    return this.listeners.on(event, listener);
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

  /** Called every `pollInterval`: looks for what nobody has said. */
  poll(): void {
    if (!this.isRunning) return;
    const now = performance.now();
    const { pollInterval, idlePollInterval } = this.options;
    const idle = now - this.lastMessageAt > IDLE_AFTER;
    // Timers are not exact: one that comes a little early still counts.
    if (idle && now - this.lastPollAt < idlePollInterval - pollInterval / 2) return;
    this.lastPollAt = now;
    this.sweeper.poll();
    this.wake();
  }

  /** Takes nothing new, lets the running batches end within `shutdownTimeout`, and closes everything. */
  async stop(): Promise<void> {
    const workers = this.workers.splice(0);
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, this.options.shutdownTimeout, 'late');
    });
    const ended = Promise.all([this.sweeper.stop(), this.commitListener?.stop(), ...workers.map((worker) => worker.stop())]);
    const outcome = await Promise.race([ended, timeout]);
    clearTimeout(timer);
    if (outcome === 'late') {
      this.logger.warn('A batch did not end within shutdownTimeout; its messages will be sent again.');
      await Promise.all(workers.map((worker) => worker.abandon()));
    }
    await this.sessions.close();
  }

  status(): RelayStatus {
    return {
      running: this.isRunning,
      trouble: this.trouble.current,
      missingTopics: this.topics.missing,
      unavailableTopics: this.topics.unavailable,
      lastSuccessAt: this.lastSuccessAt,
      published: this.published,
      lost: this.lostIds.size,
    };
  }

  private load(): Load {
    if (this.workers.every((worker) => worker.isIdle)) return 'idle';
    return performance.now() - this.lastFullClaimAt < BEHIND_FOR ? 'behind' : 'working';
  }

  private progressed(messages: Claim['messages'], settlement: RelaySettlement | undefined): void {
    this.lastSuccessAt = new Date();
    this.trouble.over('database');
    if (messages.length > 0) this.lastMessageAt = performance.now();
    if (!settlement) return;
    this.trouble.over('publisher');
    const { sent, waiting } = settlement;
    for (const { message, failure } of waiting) this.topics.begin(message.topic, failure);
    if (sent.length === 0) return;
    this.trouble.over('broker');
    this.published += sent.length;
    for (const { topic } of sent) this.topics.over(topic);
    this.sweeper.soon();
  }

  private lost(ids: readonly string[]): void {
    const news = ids.filter((id) => !this.lostIds.has(id));
    for (const id of news) this.lostIds.add(id);
    if (news.length === 0) return;
    this.logger.error(`Messages are in no state, not pending, held, dead or sent; somebody has edited the tables: ids ${news.slice(0, 20).join(', ')}.`);
  }

  private failed(stage: RelayStage, error: unknown): void {
    this.trouble.begin(stage, error);
    this.listeners.emit('failed', () => ({ stage, error: error instanceof Error ? error : new Error(String(error)) }));
  }
}

function stackOf(error: unknown): unknown {
  return error instanceof Error ? error.stack : error;
}
