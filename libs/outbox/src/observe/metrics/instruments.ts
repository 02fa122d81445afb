/** What can be measured. Names are OpenTelemetry's; {@link prometheusName} says what Prometheus calls them. */
export interface Instrument {
  readonly name: string;
  /**
   * `counter` and `histogram` are recorded when something happens. `gauge` and `total` are read when somebody asks;
   * a `total` only grows.
   */
  readonly kind: 'counter' | 'histogram' | 'gauge' | 'total';
  /** `s` seconds, `By` bytes, or what is counted, in braces. */
  readonly unit: string;
  readonly help: string;
  readonly labels: readonly Label[];
  readonly buckets?: readonly number[];
}

/** What tells series apart. Their number must stay small: never a key, an id or the text of an error. */
export type Label = 'data_source' | 'topic' | 'consumer' | 'outcome' | 'stage' | 'table' | 'kind' | 'route' | 'group';

export type Labels = Readonly<Partial<Record<Label, string>>>;

const LATENCY = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];
const CALL = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

const define = (kind: Instrument['kind'], name: string, unit: string, help: string, labels: readonly Label[] = [], buckets?: readonly number[]): Instrument => ({
  name: `outbox.${name}`,
  kind,
  unit,
  help,
  labels: ['data_source', ...labels],
  ...(buckets ? { buckets } : {}),
});

/** Everything that the outbox measures. */
export const INSTRUMENTS = {
  emitted: define('counter', 'messages.emitted', '{message}', 'Messages written by transactions that have committed.', ['topic']),
  large: define('counter', 'messages.large', '{message}', 'Messages emitted that are larger than half of maxMessageBytes.', ['topic']),
  published: define('counter', 'messages.published', '{message}', 'Messages acknowledged by the broker and settled in the tables.', ['topic']),
  refused: define('counter', 'messages.refused', '{message}', 'Refusals: attempts that counted, those that parked the message included.', ['topic']),
  retried: define('counter', 'messages.retried', '{message}', 'Refused messages that are tried again after a pause.', ['topic']),
  parked: define('counter', 'messages.parked', '{message}', 'Messages given up by the relay: dead.', ['topic']),
  deferred: define('counter', 'messages.deferred', '{message}', 'Messages put aside because their topic takes nothing; no attempt is counted.', ['topic']),
  unanswered: define('counter', 'messages.unanswered', '{message}', 'Messages sent without an answer: they are sent again, and may be on the topic already.', ['topic']),
  lanesLost: define('counter', 'lanes.lost', '{lane}', 'Lanes lost to others, or held for too long, before their batch was settled.'),
  lanesLostMessages: define('counter', 'lanes.lost_messages', '{message}', 'Messages of lost lanes: they are sent again, and may be on the topic twice.'),
  relayFailures: define('counter', 'relay.failures', '{failure}', 'Failures of a part of the relay, each tried again: database, broker or publisher.', ['stage']),
  batch: define('histogram', 'batch.size', '{message}', 'Messages of a batch as it was handed to the broker.', [], SIZES),
  delivery: define('histogram', 'delivery.duration', 's', 'From the writing of a message, just before its commit, to the acknowledgement being settled; by the clock of the database.', ['topic'], LATENCY),
  publish: define('histogram', 'publish.duration', 's', 'One call of the publisher: a batch.', [], CALL),
  claim: define('histogram', 'claim.duration', 's', 'Locking lanes and reading what stands first in them, where anything did.', [], CALL),
  settle: define('histogram', 'settle.duration', 's', 'Committing the outcome of a batch.', [], CALL),
  consumed: define('counter', 'consumer.messages', '{message}', 'What became of messages at a consumer: handled, duplicate, ignored, stale, skipped, dead_lettered or stopped. A batch repeated whole counts each.', ['consumer', 'outcome']),
  consumerFailures: define('counter', 'consumer.failures', '{failure}', 'Failed attempts of a consumer.', ['consumer']),

  pending: define('gauge', 'messages.pending', '{message}', 'Messages that wait to be sent. Exact to 10,000; beyond, the exact sum is shared out as among the first 10,000.', ['topic']),
  held: define('gauge', 'messages.held', '{message}', 'Messages that wait behind a refused one of their key, an operator, or a topic that takes nothing.', ['topic']),
  dead: define('gauge', 'messages.dead', '{message}', 'Messages that were given up and wait for an operator.', ['topic']),
  blockedKeys: define('gauge', 'keys.blocked', '{key}', 'Keys whose messages wait for an operator.', ['topic']),
  oldestAge: define('gauge', 'oldest.age', 's', 'Age of the oldest message that waits to be sent, by the clock of the database; 0 when none waits.'),
  lost: define('gauge', 'messages.lost', '{message}', 'Messages found in no state since the process started: somebody has edited the tables.'),
  databaseUp: define('gauge', 'database.up', '', 'Whether the tables could be read for this answer.'),
  paused: define('gauge', 'relay.paused', '', 'Whether an operator has paused all relays.'),
  topicPaused: define('gauge', 'topic.paused', '', 'Topics that an operator has paused.', ['topic']),
  relayRunning: define('gauge', 'relay.running', '', 'Whether a relay runs in this process.'),
  relayLastSuccess: define('gauge', 'relay.last_success.timestamp', 's', 'When the relay of this process last settled a batch or found nothing to send, in seconds since 1970.'),
  relayTrouble: define('gauge', 'relay.trouble', '', 'What keeps the relay of this process from publishing: database, broker or publisher.', ['stage']),
  topicMissing: define('gauge', 'topic.missing', '', 'Topics that do not exist; their messages wait.', ['topic']),
  topicUnavailable: define('gauge', 'topic.unavailable', '', 'Topics that take nothing at the moment; their messages wait.', ['topic']),
  routeUp: define('gauge', 'route.up', '', 'Whether a route of the publisher is open.', ['route']),
  consumerFailing: define('gauge', 'consumer.failing', 's', 'For how long a consumer of this process has done nothing but fail; 0 when its last message went well.', ['consumer']),
  consumerLastSuccess: define('gauge', 'consumer.last_success.timestamp', 's', 'When a consumer of this process last handled a message, in seconds since 1970.', ['consumer']),
  consumerStopped: define('gauge', 'consumer.partitions.stopped', '{partition}', 'Partitions that a consumer of this process has stopped after a failure, until something of them is handled.', ['consumer']),
  groupAway: define('gauge', 'consumer.group.away', '', 'Groups of Kafka that a client of this process has crashed out of, while it is away.', ['group']),
  tableRows: define('gauge', 'table.rows', '{row}', 'Rows of a table, as the database estimates them.', ['table']),
  tableSize: define('gauge', 'table.size', 'By', 'Size of a table with its indexes, as the database tells it; MySQL renews it once a day.', ['table']),
  purged: define('total', 'purged.rows', '{row}', 'Rows that the cleaner of this process has taken away: sent, dead, consumed, failures, audit, sequences, history.', ['kind']),
} as const satisfies Record<string, Instrument>;

/** By the rules by which OpenTelemetry's exporters name for Prometheus, so that one dashboard serves both. */
export function prometheusName({ name, kind, unit }: Instrument): string {
  const suffix = unit === 's' ? '_seconds' : unit === 'By' ? '_bytes' : '';
  return `${name.replaceAll('.', '_')}${suffix}${kind === 'counter' || kind === 'total' ? '_total' : ''}`;
}
