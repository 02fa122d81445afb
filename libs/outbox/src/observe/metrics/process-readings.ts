import type { ConsumerEvents } from '../../consume/consumer-events';
import type { PublisherFactory } from '../../publish/publisher';
import type { Relay } from '../../relay/relay';
import type { RelayStage } from '../../relay/relay-events';
import { INSTRUMENTS, type Labels } from './instruments';
import type { Reading } from './outbox-metrics';

const STAGES: readonly RelayStage[] = ['database', 'broker', 'publisher'];

export interface ObservedProcess {
  readonly relay: Relay;
  readonly publisher: PublisherFactory;
  readonly consumers: ConsumerEvents;
  /** Rows that the cleaner has taken away since the start, by kind. */
  readonly purged: () => object;
}

/** What the parts of this process say of themselves. */
export function processReadings({ relay, publisher, consumers, purged }: ObservedProcess): readonly Reading[] {
  const readings: Reading[] = [];
  const add = (name: keyof typeof INSTRUMENTS, value: number, labels: Labels = {}): void => {
    readings.push({ instrument: INSTRUMENTS[name], labels, value });
  };
  const { running, trouble, missingTopics, unavailableTopics, lastSuccessAt, lost } = relay.status();
  add('relayRunning', Number(running));
  add('lost', lost);
  if (lastSuccessAt) add('relayLastSuccess', lastSuccessAt.getTime() / 1000);
  if (running) for (const stage of STAGES) add('relayTrouble', Number(trouble?.stage === stage), { stage });
  for (const topic of missingTopics) add('topicMissing', 1, { topic });
  for (const { topic } of unavailableTopics) add('topicUnavailable', 1, { topic });
  for (const route of publisher.routes?.() ?? []) add('routeUp', Number(!route.trouble), { route: route.name });
  for (const { consumer, failingSince, lastSuccessAt: succeededAt, stopped } of consumers.statuses()) {
    add('consumerFailing', failingSince ? (Date.now() - failingSince.getTime()) / 1000 : 0, { consumer });
    add('consumerStopped', stopped.length, { consumer });
    if (succeededAt) add('consumerLastSuccess', succeededAt.getTime() / 1000, { consumer });
  }
  for (const group of new Set(consumers.groups.all().map(({ groupId }) => groupId))) add('groupAway', 1, { group });
  for (const [kind, rows] of Object.entries(purged())) add('purged', Number(rows), { kind });
  return readings;
}
