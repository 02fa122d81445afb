import type { ConsumerEvents } from '../consume/consumer-events';
import type { Relay } from '../relay/relay';
import type { OutboxHealth } from './outbox-health';
import { consumerReasons, relayReasons } from './reasons';

/** What `@nestjs/terminus` takes from an indicator. */
export type HealthResult<Key extends string> = Record<Key, { readonly status: 'up' | 'down' } & Readonly<Record<string, unknown>>>;

/** When an app that can do its work is no longer ready all the same. Times in ms; what is not given does not count. */
export interface RelayThresholds {
  /** Age of the oldest message that waits, in the tables: all processes share it. */
  readonly oldestAge?: number;
  /** Time since the relay of this process last settled a batch or found nothing to send. */
  readonly lastSuccess?: number;
}

export interface ConsumerThresholds {
  /** How long a consumer of this process may do nothing but fail, in ms. Default: however long. */
  readonly failingFor?: number;
}

export interface LiveThresholds {
  /** How long the relay of this process may give no sign of life, in ms. Default 60,000. */
  readonly silentFor?: number;
}

const DEFAULT_SILENCE = 60_000;

/**
 * Health for `@nestjs/terminus`, 10 and later: give its methods to `HealthCheckService.check([() => …])`. Trouble that
 * the app can work through, such as a broker that is away, is told in `reasons` and leaves the status `up`.
 */
export class OutboxHealthIndicator {
  private readonly begun = Date.now();

  constructor(
    private readonly health: OutboxHealth,
    private readonly relayOfProcess: Relay,
    private readonly consumerEvents: ConsumerEvents,
  ) {}

  /**
   * For liveness: `down` when a new start could help, since the relay of this process hangs, or a Kafka client of its
   * consumers has crashed for good. It asks neither database nor broker: a process that waits for them is alive.
   */
  alive<Key extends string>(key: Key, { silentFor = DEFAULT_SILENCE }: LiveThresholds = {}): HealthResult<Key> {
    const { running, trouble, lastSuccessAt } = this.relayOfProcess.status();
    const silence = Date.now() - (lastSuccessAt?.getTime() ?? this.begun);
    const hangs = running && !trouble && silence > silentFor;
    const reasons = hangs ? [`the relay has given no sign of life for ${silence} ms`] : [];
    const groups = this.consumerEvents.groups.all().filter(({ isComingBack }) => !isComingBack);
    reasons.push(...consumerReasons({ consumers: [], groups }));
    return result(key, reasons.length > 0, { running, lastSuccessAt, reasons });
  }

  /** For readiness: `down` when the tables cannot be read, or a threshold is passed. */
  async relay<Key extends string>(key: Key, { oldestAge, lastSuccess }: RelayThresholds = {}): Promise<HealthResult<Key>> {
    const report = await this.health.check();
    const { backlog, relay, routes } = report;
    const down: string[] = [];
    if (!backlog) down.push(...report.reasons.slice(0, 1));
    const age = backlog?.oldestAge ?? 0;
    if (oldestAge !== undefined && age > oldestAge) down.push(`the oldest message has waited for ${age} ms`);
    const silence = Date.now() - (relay.lastSuccessAt?.getTime() ?? this.begun);
    if (lastSuccess !== undefined && relay.running && silence > lastSuccess) down.push(`the relay has had no success for ${silence} ms`);
    return result(key, down.length > 0, {
      ...backlog,
      running: relay.running,
      lastSuccessAt: relay.lastSuccessAt,
      brokerReachable: relay.running ? relay.trouble?.stage !== 'broker' : null,
      missingTopics: relay.missingTopics,
      unavailableTopics: relay.unavailableTopics,
      routes,
      reasons: [...down, ...relayReasons(report)],
    });
  }

  /** For readiness: `down` when a consumer has done nothing but fail for longer than `failingFor`. */
  async consumers<Key extends string>(key: Key, { failingFor = Number.POSITIVE_INFINITY }: ConsumerThresholds = {}): Promise<HealthResult<Key>> {
    const { consumers, groups } = await this.health.check();
    const isDown = consumers.some(({ failingSince }) => failingSince && Date.now() - failingSince.getTime() > failingFor);
    return result(key, isDown, { consumers, groups, reasons: consumerReasons({ consumers, groups }) });
  }
}

function result<Key extends string>(key: Key, isDown: boolean, details: Readonly<Record<string, unknown>>): HealthResult<Key> {
  return { [key]: { ...details, status: isDown ? 'down' : 'up' } } as HealthResult<Key>;
}
