import { toWireRecord } from '../publish/wire-record';
import type { Publisher, PublishFailure, PublishOutcome } from '../publish/publisher';
import type { Claim, ClaimSession } from '../store/claim';
import { backoff } from './backoff';
import type { RelayOptions } from './relay-options';
import { toSettlement } from './settlement';

/** What a worker needs of the relay that it works for. */
export interface RelayWorkerHost {
  readonly options: Required<RelayOptions>;
  openSession(): Promise<ClaimSession>;
  createPublisher(): Publisher;
  /** Called when a claim was full, so that another worker may help. */
  onFullClaim(): void;
  /** Called after each batch, and after each look that found nothing. */
  onSuccess(sent: number): void;
  onFailure(stage: 'database' | 'broker', error: unknown): void;
}

/** Claims, publishes and settles, batch after batch, and sleeps when there is nothing to do. */
export class RelayWorker {
  private session: ClaimSession | undefined;
  private publisher: Publisher | undefined;
  private stopping = false;
  private wanted = false;
  private sleeping: (() => void) | undefined;
  private failures = 0;
  private brokerIsAway = false;
  private readonly finished: Promise<void>;

  constructor(private readonly host: RelayWorkerHost) {
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
    await this.finished;
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      const worked = await this.tick();
      if (this.stopping) break;
      if (this.failures > 0) await this.sleep(backoff(this.failures, this.host.options));
      else if (!worked && !this.wanted) await this.sleep();
    }
    await this.closePublisher();
    await this.closeSession();
  }

  /** One batch. True when there may be more. Never rejects. */
  private async tick(): Promise<boolean> {
    this.wanted = false;
    if (this.brokerIsAway && !(await this.reachBroker())) return false;
    let claim: Claim | undefined;
    try {
      this.session ??= await this.host.openSession();
      claim = await this.session.claim(this.limits());
      if (!claim) {
        this.failures = 0;
        this.host.onSuccess(0);
        return false;
      }
      if (claim.messages.length >= this.host.options.batchSize / 2) this.host.onFullClaim();
      const failure = await this.publishAndSettle(this.session, claim);
      if (failure) return this.brokerFailed(failure);
      this.failures = 0;
      return true;
    } catch (error) {
      this.failures++;
      this.host.onFailure('database', error);
      await this.closeSession();
      return false;
    }
  }

  /** Why the broker took nothing of the batch, if so. */
  private async publishAndSettle(session: ClaimSession, claim: Claim): Promise<PublishFailure | undefined> {
    const outcomes = await this.publish(claim);
    const settlement = toSettlement(claim.messages, outcomes, this.host.options);
    const unknown = outcomes.find((outcome) => outcome.status === 'unknown');
    if (unknown && settlement.sent.length + settlement.retried.length + settlement.parked.length === 0) {
      await session.release();
      return unknown.failure;
    }
    await session.settle(settlement);
    this.host.onSuccess(settlement.sent.length);
    return undefined;
  }

  private async publish(claim: Claim): Promise<readonly PublishOutcome[]> {
    if (claim.messages.length === 0) return [];
    this.publisher ??= this.host.createPublisher();
    return this.publisher.publish(claim.messages.map(toWireRecord), { timeout: this.host.options.publishTimeout });
  }

  private brokerFailed(failure: PublishFailure): boolean {
    this.failures++;
    this.brokerIsAway = true;
    this.host.onFailure('broker', new Error(`${failure.code}: ${failure.message}`));
    return false;
  }

  /** After an outage the broker is asked first: while it is away, no transaction is opened for it. */
  private async reachBroker(): Promise<boolean> {
    try {
      this.publisher ??= this.host.createPublisher();
      await this.publisher.connect();
      this.brokerIsAway = false;
      return true;
    } catch (error) {
      this.failures++;
      this.host.onFailure('broker', error);
      return false;
    }
  }

  private limits() {
    const { lanesPerClaim, batchSize, batchBytes } = this.host.options;
    return { lanes: lanesPerClaim, rows: batchSize, bytes: batchBytes };
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
    await session?.close().catch(() => undefined);
  }

  private async closePublisher(): Promise<void> {
    const { publisher } = this;
    this.publisher = undefined;
    await publisher?.close().catch(() => undefined);
  }
}
