import type { DataSource } from 'typeorm';
import type { ConsumerEvents } from '../consume/consumer-events';
import type { ConsumerStatus } from '../consume/consumer-status';
import type { LostGroup } from '../consume/kafka-groups';
import type { PublisherFactory, RouteStatus } from '../publish/publisher';
import type { Relay, RelayStatus } from '../relay/relay';
import type { Backlog, OutboxStore } from '../store/outbox-store';
import { consumerReasons, relayReasons } from './reasons';

export interface OutboxHealthReport {
  /**
   * - `up`: messages flow.
   * - `degraded`: the app works, and messages wait: the broker is away, messages are dead, or a consumer fails.
   * - `down`: the database does not answer.
   */
  readonly status: 'up' | 'degraded' | 'down';
  /** `null` when the database does not answer. */
  readonly backlog: Backlog | null;
  readonly relay: RelayStatus;
  /** How each route is, where the publisher is a `route`; else empty. */
  readonly routes: readonly RouteStatus[];
  /** How each consumer of this process is that has seen a message. */
  readonly consumers: readonly ConsumerStatus[];
  /** Groups of Kafka that a consumer of this process has dropped out of by a crash. */
  readonly groups: readonly LostGroup[];
  /** Why the status is not `up`. */
  readonly reasons: readonly string[];
}

/** Says how the outbox is. */
export class OutboxHealth {
  constructor(
    private readonly dataSource: DataSource,
    private readonly store: OutboxStore,
    private readonly relay: Relay,
    private readonly publisher: PublisherFactory,
    private readonly consumerEvents: ConsumerEvents,
  ) {}

  /** Looks at the tables and the relay. Never rejects. */
  async check(): Promise<OutboxHealthReport> {
    const seen = {
      relay: this.relay.status(),
      routes: this.publisher.routes?.() ?? [],
      consumers: this.consumerEvents.statuses(),
      groups: this.consumerEvents.groups.all(),
    };
    const away: string[] = [];
    let backlog: Backlog | null = null;
    try {
      backlog = await this.store.backlog(this.dataSource);
    } catch (error) {
      away.push(`the database does not answer: ${error instanceof Error ? error.message : String(error)}`);
    }
    const reasons = [...away, ...relayReasons({ ...seen, backlog }), ...consumerReasons(seen)];
    return { ...seen, status: backlog ? (reasons.length > 0 ? 'degraded' : 'up') : 'down', backlog, reasons };
  }
}
