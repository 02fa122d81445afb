import type { TryOutcome } from '../bisect';
import type { Deadline } from '../deadline';
import { acknowledged, unknown, type Unknown } from '../outcome';
import type { PublishRecord } from '../publisher';
import { outcomeOfCode, outcomeOfFailure } from './outcome-of-code';
import type { QuietLog } from './quiet-log';
import type { KafkaClient, Sent, SentRecord, Session } from './session';

/**
 * Sends a batch so that what is wrong with one topic or partition does not hold back the others. The clients give up the
 * whole batch, before anything of it is written, when one of its topics is missing or one leader cannot be reached.
 */
export class TopicWiseSender {
  private session: Session | null = null;
  private sessions = 0;
  /** Topics that failed the last time are sent apart until one passes. */
  private readonly apart = new Set<string>();
  /** Within one deadline the brokers are looked for once. */
  private unreachable: { readonly deadline: Deadline; readonly outcome: Unknown } | null = null;

  constructor(
    private readonly client: KafkaClient,
    private readonly log: QuietLog,
  ) {}

  async connect(deadline: Deadline): Promise<Session> {
    if (this.session === null || this.session.stopped) {
      const session = this.client.createSession(this.sessions++);
      this.session = session;
      await session.connect(deadline);
    }
    return this.session;
  }

  async close(grace: Deadline): Promise<void> {
    await this.session?.close(grace);
  }

  /** One try for each record. */
  send(records: readonly PublishRecord[], deadline: Deadline): Promise<readonly TryOutcome[]> {
    if (this.apart.size === 0) return this.sendGroup(records, deadline);
    const parts = groupBy(records, ({ topic }) => (this.apart.has(topic) ? topic : ''));
    return this.sendParts(records, parts, deadline);
  }

  /** One part after the other; `parts` holds indexes into the records. */
  private async sendParts(
    records: readonly PublishRecord[],
    parts: readonly (readonly number[])[],
    deadline: Deadline,
  ): Promise<TryOutcome[]> {
    const outcomes: TryOutcome[] = records.map(() => unknown('NOT_SENT', 'the record was never tried'));
    for (const part of parts) {
      const wanted = new Set(part);
      const tried = await this.sendGroup(records.filter((_, index) => wanted.has(index)), deadline);
      part.forEach((index, position) => {
        const outcome = tried[position];
        if (outcome !== undefined) outcomes[index] = outcome;
      });
    }
    return outcomes;
  }

  private async sendGroup(records: readonly PublishRecord[], deadline: Deadline): Promise<readonly TryOutcome[]> {
    const session = await this.reach(deadline);
    if ('status' in session) return records.map(() => session);
    const sent = await session.send(records, deadline);
    const parts = deadline.expired ? [] : partsOf(records, sent);
    if (parts.length > 1) return this.sendParts(records, parts, deadline);
    this.remember(records, sent);
    return sent.records.map((record) => outcomeOf(sent, record));
  }

  private async reach(deadline: Deadline): Promise<Session | Unknown> {
    if (this.unreachable?.deadline === deadline) return this.unreachable.outcome;
    try {
      return await this.connect(deadline);
    } catch (error) {
      const { code, message } = this.client.explain(error);
      const outcome = unknown(code, `no connection to Kafka: ${message}`);
      this.unreachable = { deadline, outcome };
      return outcome;
    }
  }

  private remember(records: readonly PublishRecord[], sent: Sent): void {
    const topics = new Set(records.map(({ topic }) => topic));
    const [topic] = topics;
    if (topics.size > 1 || topic === undefined) return;
    if (sent.failure === null || sent.written) {
      this.apart.delete(topic);
      return;
    }
    this.apart.add(topic);
    if (sent.failure.code === 'UNKNOWN_TOPIC_OR_PARTITION') {
      this.log.warn(`The topic ${topic} does not exist: its messages wait until it is created`);
    }
  }
}

/** What a batch falls apart into when the client gave it up before anything was written. */
function partsOf(records: readonly PublishRecord[], sent: Sent): number[][] {
  if (sent.failure === null || sent.written) return [];
  const topics = groupBy(records, ({ topic }) => topic);
  if (topics.length > 1) return topics;
  // In any order: where time runs out, it should not always be for the same partitions.
  return groupBy(sent.records, ({ place }) => place?.unit ?? '')
    .map((part) => ({ part, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ part }) => part);
}

function outcomeOf(sent: Sent, { place, answer }: SentRecord): TryOutcome {
  if (place !== null && answer !== undefined) {
    if (answer.errorCode !== 0) return outcomeOfCode(answer.errorCode, place.unit);
    const offset = answer.baseOffset === null ? null : String(answer.baseOffset + BigInt(place.index));
    return acknowledged(place.partition, offset);
  }
  if (sent.late) return unknown('TIMEOUT', 'Kafka did not answer in time');
  if (sent.failure === null) return unknown('NOT_NAMED', 'the client reported success without naming the record');
  const outcome = outcomeOfFailure(sent.failure);
  // What may have been written may be stored; only what certainly was not can be refused for the topic's sake.
  return sent.written && outcome.status === 'refused' ? unknown(outcome.failure.code, outcome.failure.message) : outcome;
}

/** Indexes by a name, those without one first, each group in the order of the items. */
function groupBy<T>(items: readonly T[], nameOf: (item: T) => string): number[][] {
  const groups = new Map<string, number[]>([['', []]]);
  items.forEach((item, index) => {
    const group = groups.get(nameOf(item));
    if (group === undefined) groups.set(nameOf(item), [index]);
    else group.push(index);
  });
  return [...groups.values()].filter(({ length }) => length > 0);
}
