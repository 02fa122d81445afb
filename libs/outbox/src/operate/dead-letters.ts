import { NoTransactionError, OperationInvalidError } from '../errors';
import type { OutboxMessage } from '../event/message';
import type { Sql } from '../store/dialect';
import { readMessages } from '../store/look';
import type { OutboxStore } from '../store/outbox-store';
import type { AmbientTransactions } from '../transaction/ambient-transactions';
import type { TransactionRunner } from '../transaction/transaction-runner';
import type { Operator } from './audit';
import { consumedId, type DeadLetter, describeLetter, type NotReplayable, originalMessage } from './dead-letter-record';
import { type KafkaClient, rangesOf, readTopic, type TopicRecord } from './kafka-topic';
import type { OutboxAdmin } from './outbox-admin';
import { checkLimit, checkTopic } from './targets';

/** A dead letter by its place. */
export interface LetterPlace {
  readonly partition: number;
  readonly offset: string;
}

export interface DeadLetterPage {
  readonly letters: readonly DeadLetter[];
  /** Give it as `after` for the next page; `null` at the end. */
  readonly next: string | null;
}

export interface ReplayResult {
  readonly replayed: number;
  readonly notFound: readonly LetterPlace[];
  /** `waiting`: its message is on its way already, or was given up by the relay: see `OutboxAdmin`. */
  readonly skipped: readonly (LetterPlace & { readonly why: NotReplayable | 'waiting' })[];
}

const MAX_PAGE = 1000;

/**
 * What consumers have given up: the records of their dead-letter topics, and how they come back. Give it a client of
 * kafkajs. Replay in the service whose consumer has given the message up: its database knows that it did.
 */
export class DeadLetters {
  /** @internal */
  constructor(
    private readonly ambient: AmbientTransactions,
    private readonly transactions: TransactionRunner,
    private readonly store: OutboxStore,
    private readonly admin: OutboxAdmin,
  ) {}

  /**
   * Records of a dead-letter topic, oldest first in each partition, without what they say. It takes a few seconds: Kafka
   * wants a consumer group for it, which commits nothing and is deleted afterwards.
   *
   * @param page `limit` defaults to 50, and is at most 1000
   * @throws OperationInvalidError
   */
  async list(kafka: KafkaClient, topic: string, page: { readonly after?: string; readonly limit?: number } = {}): Promise<DeadLetterPage> {
    checkTopic(topic);
    const { after, limit = 50 } = page;
    checkLimit(limit, MAX_PAGE);
    const begun = cursorOf(after);
    const all = await rangesOf(kafka, topic);
    const ranges = new Map([...all].map(([partition, { from, to }]) => [partition, { from: larger(begun.get(partition), from), to }]));
    const letters: DeadLetter[] = [];
    const read = await readTopic(kafka, topic, ranges, (record) => letters.length < limit && letters.push(describeLetter(record)) > 0);
    const isEnd = [...ranges].every(([partition, { to }]) => (read.get(partition) ?? 0n) >= to);
    return { letters, next: isEnd ? null : [...read].map(([partition, offset]) => `${partition}:${offset}`).join(',') };
  }

  /**
   * Sends the messages of dead letters to the topics that they came from, with id, key, value and headers as they were,
   * through the outbox. Its consumer handles each again, with a full count of attempts; others on the topic see a repeat.
   * One that was handled since is a repeat for its consumer too.
   *
   * @throws OperationInvalidError
   */
  async replay(kafka: KafkaClient, topic: string, places: readonly LetterPlace[], operator: Operator): Promise<ReplayResult> {
    checkTopic(topic);
    if (places.length > MAX_PAGE) throw new OperationInvalidError(`At most ${MAX_PAGE} dead letters at once, not ${places.length}.`);
    for (const { partition, offset } of places) {
      if (!Number.isSafeInteger(partition) || partition < 0 || !/^\d{1,19}$/.test(offset)) throw new OperationInvalidError(`${partition}@${offset} is no place in a topic.`);
    }
    return this.admin.trail.record('replay dead letters', operator, { topic, places: places.map(({ partition, offset }) => `${partition}@${offset}`) }, async (_, entry) => {
      const records = await this.find(kafka, topic, places);
      const skipped: (LetterPlace & { why: NotReplayable | 'waiting' })[] = [];
      let replayed = 0;
      for (const record of records.values()) {
        const message = originalMessage(record);
        const why = typeof message === 'string' ? message : await this.sendAgain(message, record, operator, (sql) => entry.note(sql, { replayed: replayed + 1 }));
        entry.committed();
        if (why === undefined) replayed++;
        else skipped.push({ partition: record.partition, offset: record.offset, why });
      }
      return { replayed, notFound: places.filter((place) => !records.has(nameOf(place))), skipped };
    });
  }

  private async find(kafka: KafkaClient, topic: string, places: readonly LetterPlace[]): Promise<ReadonlyMap<string, TopicRecord>> {
    const records = new Map<string, TopicRecord>();
    const wanted = new Set(places.map(nameOf));
    const ranges = new Map<number, { from: bigint; to: bigint }>();
    for (const [partition, { from, to }] of await rangesOf(kafka, topic)) {
      const offsets = places.filter((place) => place.partition === partition).map(({ offset }) => BigInt(offset)).filter((offset) => offset >= from && offset < to);
      const [first] = offsets;
      if (first === undefined) continue;
      ranges.set(partition, {
        from: offsets.reduce((least, offset) => (offset < least ? offset : least), first),
        to: offsets.reduce((most, offset) => (offset > most ? offset : most), first) + 1n,
      });
    }
    await readTopic(kafka, topic, ranges, (record) => {
      if (wanted.has(nameOf(record))) records.set(nameOf(record), record);
      return true;
    });
    return records;
  }

  /** Forgets that the consumer has had it, and sends it, in one transaction where the log does not have it already. */
  private async sendAgain(message: OutboxMessage, letter: TopicRecord, operator: Operator, note: (sql: Sql) => Promise<void>): Promise<'waiting' | undefined> {
    const { consumer } = describeLetter(letter);
    const [logged] = await readMessages(this.ambient.dataSource, this.store, [], [message.messageId]);
    if (logged && (logged.state !== 'sent' || logged.topic !== message.topic)) return 'waiting';
    await this.transactions.run({ propagation: 'REQUIRES_NEW' }, async () => {
      const scope = this.ambient.current();
      if (!scope) throw new NoTransactionError('The replay has no transaction.');
      if (consumer !== null) await this.store.forgetDeadLettered(scope.queryRunner, consumer, consumedId(letter) ?? message.messageId);
      if (!logged) {
        scope.add([message]);
        await note(scope.queryRunner);
      }
    });
    if (!logged) return undefined;
    // This database has sent it, and keeps one row for each id.
    return (await this.admin.replay(logged.id, operator)).done === 1 ? undefined : 'waiting';
  }
}

function nameOf({ partition, offset }: LetterPlace): string {
  return `${partition}@${BigInt(offset)}`;
}

function larger(one: bigint | undefined, other: bigint): bigint {
  return one !== undefined && one > other ? one : other;
}

/** @throws OperationInvalidError */
function cursorOf(after: string | undefined): ReadonlyMap<number, bigint> {
  if (after === undefined) return new Map();
  if (!/^\d+:\d+(,\d+:\d+)*$/.test(after)) throw new OperationInvalidError(`after must be the next of an earlier page, not "${after}".`);
  return new Map(after.split(',').map((part) => [Number(part.split(':')[0]), BigInt(part.split(':')[1] ?? 0)]));
}
