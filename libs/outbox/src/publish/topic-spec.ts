import { OutboxOptionsError } from '../errors';
import { isTopic } from '../event/to-message';

/** A topic that is created when it does not exist. One that does is never altered. */
export interface TopicSpec {
  readonly topic: string;
  /** Default: as the brokers have it (`num.partitions`). */
  readonly partitions?: number;
  /** Default: as the brokers have it (`default.replication.factor`). */
  readonly replicationFactor?: number;
  /** Settings of the topic by Kafka's names, such as `{ 'retention.ms': '604800000' }`. Default: the brokers'. */
  readonly config?: Readonly<Record<string, string>>;
}

const KNOWN = ['topic', 'partitions', 'replicationFactor', 'config'];

/** @throws OutboxOptionsError naming the topic */
export function checkTopics(topics: readonly TopicSpec[]): readonly TopicSpec[] {
  if (!Array.isArray(topics)) throw new OutboxOptionsError('topics must be a list such as [{ topic: "orders", partitions: 6 }].');
  for (const spec of topics as readonly TopicSpec[]) checkTopic(spec);
  const names = new Set(topics.map(({ topic }: TopicSpec) => topic));
  if (names.size < topics.length) throw new OutboxOptionsError('topics names a topic more than once.');
  return topics;
}

function checkTopic(spec: TopicSpec): void {
  if (typeof spec !== 'object' || spec === null) throw new OutboxOptionsError('topics must be a list of objects.');
  const fail = (what: string): never => {
    throw new OutboxOptionsError(`topics: ${JSON.stringify(spec.topic)} ${what}.`);
  };
  const unknown = Object.keys(spec).filter((option) => !KNOWN.includes(option));
  if (unknown.length > 0) fail(`has the unknown option ${unknown.join(', ')}; known are: ${KNOWN.join(', ')}`);
  if (typeof spec.topic !== 'string' || !isTopic(spec.topic)) fail('is not a name for a topic (1 to 249 of a-z A-Z 0-9 . _ -)');
  for (const option of ['partitions', 'replicationFactor'] as const) {
    const value = spec[option];
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 1)) {
      fail(`needs ${option} to be a whole number of at least 1, not ${String(value)}`);
    }
  }
  for (const [name, value] of Object.entries(spec.config ?? {})) {
    if (typeof value !== 'string') fail(`needs its config ${name} as text, not as ${typeof value}`);
  }
}
