import { TOPIC_WAITS, unknown } from '../outcome';
import type { PublishFailure, PublishOptions, PublishOutcome, Publisher, PublisherFactory, PublishRecord } from '../publisher';
import type { RoadState } from './road-state';

/** Milliseconds between two tries to connect a road that is away. */
const PAUSE = 1_000;

/** One route of one worker. Once it is away, nobody waits for it until it has connected again. */
export class Road {
  private publisher: Publisher | null = null;
  private connecting: Promise<void> | null = null;
  private away: PublishFailure | null = null;
  private nextTry = 0;

  constructor(
    readonly takes: (topic: string) => boolean,
    private readonly create: PublisherFactory,
    private readonly state: RoadState,
  ) {}

  get failure(): PublishFailure | null {
    return this.away;
  }

  connect(): Promise<void> {
    this.connecting ??= this.tryConnect().finally(() => (this.connecting = null));
    return this.connecting;
  }

  /** Never rejects. */
  async publish(records: readonly PublishRecord[], options: PublishOptions): Promise<readonly PublishOutcome[]> {
    const { away } = this;
    if (away !== null) {
      if (performance.now() >= this.nextTry) this.connect().catch(() => undefined);
      return records.map(() => unknown(away.code, away.message));
    }
    try {
      this.publisher ??= this.create();
      const outcomes = await this.publisher.publish(records, options);
      const answered = outcomes.some(({ status }) => status !== 'unknown');
      const first = outcomes.find((outcome) => outcome.status === 'unknown');
      if (answered) this.isBack();
      // A topic that does not exist, or cannot take anything, is no fault of the road.
      else if (first?.status === 'unknown' && !TOPIC_WAITS.has(first.failure.code)) this.isAway(first.failure);
      return outcomes;
    } catch (error) {
      // It breaks its contract; what it may still have on its way must not come after what another one sends.
      await this.close();
      this.isAway({ code: 'PUBLISHER_FAULT', message: messageOf(error) });
      return records.map(() => unknown('PUBLISHER_FAULT', messageOf(error)));
    }
  }

  async close(): Promise<void> {
    const { publisher } = this;
    this.publisher = null;
    await publisher?.close();
  }

  private async tryConnect(): Promise<void> {
    try {
      this.publisher ??= this.create();
      await this.publisher.connect();
      this.isBack();
    } catch (error) {
      this.isAway({ code: 'CONNECTION_FAILED', message: messageOf(error) });
      throw error;
    } finally {
      this.nextTry = performance.now() + PAUSE;
    }
  }

  private isAway(failure: PublishFailure): void {
    this.away = failure;
    this.state.begin(`${failure.code}: ${failure.message}`);
  }

  private isBack(): void {
    this.away = null;
    this.state.over();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
