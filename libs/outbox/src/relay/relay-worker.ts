import type { PublisherFactory, PublishFailure, PublishOutcome } from '../publish/publisher';
import type { WireFormat } from '../publish/wire-record';
import type { Claim, ClaimSession } from '../store/claim';
import { backoff } from './backoff';
import type { RelayListeners, RelayStage } from './relay-events';
import { oldestClaimToPublish, type RelayOptions } from './relay-options';
import { isEmpty, isUnanswered, type RelaySettlement, toSettlement } from './settlement';
import { WorkerPublisher } from './worker-publisher';

/** What a worker needs of the relay that it works for. */
export interface RelayWorkerHost {
  readonly options: Required<RelayOptions>;
  readonly listeners: RelayListeners;
  readonly createPublisher: PublisherFactory;
  readonly format: WireFormat;
  openSession(): Promise<ClaimSession>;
  /** Called when a claim was full, so that another worker may help. */
  onFullClaim(): void;
  /** Called when the database has answered; with what it has committed, if anything. */
  onProgress(messages: Claim['messages'], settlement: RelaySettlement | undefined): void;
  onBrokerReached(): void;
  onFailure(stage: RelayStage, error: unknown): void;
}

/** Batches in a row that are not answered for as a whole before a topic without a leader gets out of the way of others. */
const PATIENCE = 4;

interface OpenClaim extends Claim {
  readonly session: ClaimSession;
  readonly takenAt: number;
}

/** Claims, publishes and settles, batch after batch, and sleeps when there is nothing to do. */
export class RelayWorker {
  private session: ClaimSession | undefined;
  private sessionUsedAt = 0;
  private readonly publisher: WorkerPublisher;
  private stopping = false;
  private wanted = false;
  private sleeping: (() => void) | undefined;
  private connecting = false;
  private failures = 0;
  /** Batches in a row of which a part was not answered for. */
  private partial = 0;
  /** Asked before the first batch, so that a broker that is away is known before anybody waits for it. */
  private brokerIsReached = false;
  private readonly finished: Promise<void>;

  constructor(private readonly host: RelayWorkerHost) {
    this.publisher = new WorkerPublisher(host.createPublisher, host.format, host.options.publishTimeout);
    this.finished = this.run();
  }

  get isIdle(): boolean {
    return this.sleeping !== undefined && this.failures === 0;
  }

  /** Has the worker look for messages now, or, if it is busy, once more. A pause after a failure is not cut short. */
  wake(): void {
    this.wanted = true;
    if (this.failures === 0) this.sleeping?.();
  }

  /** Resolves when the running batch is settled or given back, and nothing is left open. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.sleeping?.();
    if (this.connecting) void this.publisher.close();
    await this.finished;
  }

  /** Ends the running batch where it is. Its messages will be sent again. */
  async abandon(): Promise<void> {
    await this.publisher.close();
    await this.closeSession();
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      const worked = await this.tick();
      if (this.stopping) break;
      if (this.failures > 0) await this.sleep(backoff(this.failures, this.host.options));
      else if (this.partial > 0) await this.sleep(Math.min(backoff(this.partial, this.host.options), this.host.options.retryDelay));
      else if (!worked && !this.wanted) await this.sleep();
    }
    await this.abandon();
  }

  /** One batch. True when there may be more. Never rejects. */
  private async tick(): Promise<boolean> {
    this.wanted = false;
    if (!this.brokerIsReached && !(await this.reachBroker())) return false;
    if (this.stopping) return false;
    try {
      const claim = await this.claim();
      if (!claim) return false;
      const outcomes = await this.publish(claim);
      return outcomes !== undefined && (await this.settle(claim, outcomes));
    } catch (error) {
      this.failed('database', error);
      await this.closeSession();
      return false;
    }
  }

  private async claim(): Promise<OpenClaim | undefined> {
    const { lanesPerClaim, batchSize, batchBytes } = this.host.options;
    const session = await this.freshSession();
    if (this.stopping) return undefined;
    const takenAt = performance.now();
    const claim = await session.claim({ lanes: lanesPerClaim, rows: batchSize, bytes: batchBytes });
    this.sessionUsedAt = performance.now();
    if (!claim) {
      this.failures = 0;
      this.partial = 0;
      this.host.onProgress([], undefined);
      return undefined;
    }
    if (claim.messages.length >= batchSize / 2) this.host.onFullClaim();
    const { lanes, messages } = claim;
    this.host.listeners.emit('claimed', () => ({ lanes, messages, durationMs: this.sessionUsedAt - takenAt }));
    return { ...claim, session, takenAt };
  }

  /** The outcomes; `undefined` when nothing can be said of any message, and the claim was given back. */
  private async publish(claim: OpenClaim): Promise<readonly PublishOutcome[] | undefined> {
    if (claim.messages.length === 0) return [];
    const begun = performance.now();
    if (begun - claim.takenAt > oldestClaimToPublish(this.host.options)) {
      return this.lost(claim, new Error(`The claim was ${Math.round(begun - claim.takenAt)} ms old before it could be published.`));
    }
    let outcomes: readonly PublishOutcome[];
    try {
      outcomes = await this.publisher.publish(claim.messages);
    } catch (error) {
      await claim.session.release();
      this.failed('publisher', error);
      return undefined;
    }
    const durationMs = performance.now() - begun;
    this.host.listeners.emit('published', () => ({ messages: claim.messages, outcomes, durationMs }));
    if (this.session !== claim.session) return this.lost(claim, new Error('The connection ended while the batch was being published.'));
    return outcomes;
  }

  /** True when there may be more to do at once. */
  private async settle(claim: OpenClaim, outcomes: readonly PublishOutcome[]): Promise<boolean> {
    const { session, messages, orphans } = claim;
    const settlement = toSettlement(messages, outcomes, this.host.options, this.failures + this.partial >= PATIENCE);
    const unknown = outcomes.find((outcome) => outcome.status === 'unknown');
    if (unknown && isEmpty(settlement)) {
      await session.release();
      this.brokerFailed(unknown.failure);
      return false;
    }
    const begun = performance.now();
    try {
      await session.settle(settlement);
    } catch (error) {
      // Whatever it was, nothing of the claim is certain any more.
      return this.lost(claim, error instanceof Error ? error : new Error(String(error)));
    }
    this.sessionUsedAt = performance.now();
    this.failures = 0;
    this.partial = outcomes.some(isUnanswered) ? this.partial + 1 : 0;
    this.host.onProgress(messages, settlement);
    this.report(settlement, orphans, this.sessionUsedAt - begun);
    return true;
  }

  private report({ sent, retried, parked, waiting }: RelaySettlement, orphans: readonly string[], durationMs: number): void {
    const { listeners } = this.host;
    listeners.emit('settled', () => ({ sent, durationMs }));
    for (const refused of retried) listeners.emit('held', () => ({ ...refused, reason: 'refused' }));
    for (const { message, delayMs, failure } of waiting) {
      listeners.emit('held', () => ({ message, delayMs, reason: 'topic', error: `${failure.code}: ${failure.message}` }));
    }
    for (const refused of parked) listeners.emit('parked', () => refused);
    if (orphans.length > 0) listeners.emit('lost', () => ({ ids: orphans }));
  }

  private lost({ lanes, messages }: OpenClaim, cause: Error): never {
    this.host.listeners.emit('laneLost', () => ({ lanes, messages: messages.length, cause }));
    throw cause;
  }

  private brokerFailed(failure: PublishFailure): void {
    this.brokerIsReached = false;
    this.failed('broker', new Error(`${failure.code}: ${failure.message}`));
  }

  private failed(stage: RelayStage, error: unknown): void {
    this.failures++;
    this.host.onFailure(stage, error);
  }

  /** While the broker is away, no transaction is opened for it. */
  private async reachBroker(): Promise<boolean> {
    this.connecting = true;
    try {
      await this.publisher.connect();
      this.brokerIsReached = true;
      this.host.onBrokerReached();
      return true;
    } catch (error) {
      if (!this.stopping) this.failed('broker', error);
      return false;
    } finally {
      this.connecting = false;
    }
  }

  /** The server ends a session that was idle for too long; then a new one is no news. */
  private async freshSession(): Promise<ClaimSession> {
    if (performance.now() - this.sessionUsedAt > this.host.options.sessionTimeout / 2) await this.closeSession();
    if (this.session) return this.session;
    const session = await this.host.openSession();
    session.onLost(() => {
      if (this.session !== session) return;
      this.session = undefined;
      // Others may have the lanes by now: what is being sent must stop.
      this.publisher.abort();
      void session.close();
    });
    this.session = session;
    return session;
  }

  private async sleep(milliseconds?: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = milliseconds === undefined ? undefined : setTimeout(resolve, milliseconds);
      this.sleeping = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.sleeping = undefined;
  }

  private async closeSession(): Promise<void> {
    const { session } = this;
    this.session = undefined;
    await session?.close();
  }
}
