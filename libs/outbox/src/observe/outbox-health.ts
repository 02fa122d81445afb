import type { DataSource } from 'typeorm';
import type { ConsumerEvents } from '../consume/consumer-events';
import type { ConsumerStatus } from '../consume/consumer-status';
import type { LostGroup } from '../consume/kafka-groups';
import type { PublisherFactory, RouteStatus } from '../publish/publisher';
import type { Relay, RelayStatus } from '../relay/relay';
import type { Backlog, OutboxStore } from '../store/outbox-store';

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
    const relay = this.relay.status();
    const reasons: string[] = [];
    let backlog: Backlog | null = null;
    try {
      backlog = await this.store.backlog(this.dataSource);
      if (backlog.dead > 0) reasons.push(`${backlog.dead} messages are dead`);
    } catch (error) {
      reasons.push(`the database does not answer: ${error instanceof Error ? error.message : String(error)}`);
    }
    if (relay.missingTopics.length > 0) reasons.push(`these topics do not exist: ${relay.missingTopics.join(', ')}`);
    for (const { topic, error } of relay.unavailableTopics) reasons.push(`the topic ${topic} takes nothing: ${error}`);
    const routes = this.publisher.routes?.() ?? [];
    for (const { name, trouble } of routes) if (trouble) reasons.push(`${name}: ${trouble.message}`);
    if (relay.lost > 0) reasons.push(`${relay.lost} messages are in no state: somebody has edited the tables`);
    if (relay.trouble) reasons.push(`${relay.trouble.stage}: ${relay.trouble.message}`);
    const consumers = this.consumerEvents.statuses();
    for (const { consumer, failingSince, lastError, stopped } of consumers) {
      if (failingSince) reasons.push(`${consumer} has failed since ${failingSince.toISOString()}: ${lastError}`);
      if (stopped.length > 0) reasons.push(`${consumer} has stopped ${stopped.join(', ')}`);
    }
    const groups = this.consumerEvents.groups.all();
    for (const { groupId, since, error, isComingBack } of groups) {
      reasons.push(`the consumer of group ${groupId} is away since ${since.toISOString()}: ${error}${isComingBack ? '' : '; restart the app'}`);
    }
    return { status: backlog ? (reasons.length > 0 ? 'degraded' : 'up') : 'down', backlog, relay, routes, consumers, groups, reasons };
  }
}
