import type { Deadline } from '../deadline';
import type { PublishFailure, PublishRecord } from '../publisher';

/** What a broker said of one partition of a produce request. */
export interface PartitionAnswer {
  readonly errorCode: number;
  /** Offset of the first record, `null` where the broker gave none. */
  readonly baseOffset: bigint | null;
}

/** Names a partition of a topic. */
export function unitOf(topic: string, partition: number): string {
  return `${topic}/${partition}`;
}

/** Where a record went in its batch. */
export interface Place {
  readonly partition: number;
  readonly unit: string;
  /** How many records of the batch lie before it in the partition. */
  readonly index: number;
}

/** The place of each record, `null` where no partition was chosen for it. */
export function placesOf(
  records: readonly PublishRecord[],
  partitionOf: (position: number) => number | undefined,
): (Place | null)[] {
  const topics = new Map<string, { readonly unit: string; count: number }[]>();
  return records.map(({ topic }, position) => {
    const partition = partitionOf(position);
    if (partition === undefined) return null;
    let units = topics.get(topic);
    if (units === undefined) topics.set(topic, (units = []));
    const unit = (units[partition] ??= { unit: unitOf(topic, partition), count: 0 });
    return { partition, unit: unit.unit, index: unit.count++ };
  });
}

/** What is known of a record after a send. */
export interface SentRecord {
  readonly place: Place | null;
  /** `undefined`: the broker did not name the record's partition. */
  readonly answer: PartitionAnswer | undefined;
}

export interface Sent {
  readonly records: readonly SentRecord[];
  /** Why the client failed, or `null`. */
  readonly failure: PublishFailure | null;
  /** The time was over before the client was done. */
  readonly late: boolean;
  /** Whether anything of the batch can have reached a broker. */
  readonly written: boolean;
}

/** Joins the places of records with what was said of their partitions. */
export function answered(
  places: readonly (Place | null)[],
  answerOf: (unit: string) => PartitionAnswer | undefined,
): SentRecord[] {
  return places.map((place) => ({ place, answer: place === null ? undefined : answerOf(place.unit) }));
}

/** One producer of a Kafka client, from its connection until it is stopped for good. */
export interface Session {
  /** Once stopped, a session sends nothing more and cannot be used again. */
  readonly stopped: boolean;
  /** Rejects, and stops the session, when no broker answers in time. */
  connect(deadline: Deadline): Promise<void>;
  /** Sends one batch, and returns when nothing of it is on its way any more. Never rejects. */
  send(records: readonly PublishRecord[], deadline: Deadline): Promise<Sent>;
  /** Gives the connections back. */
  close(deadline: Deadline): Promise<void>;
}

/** A Kafka client: what the publishers of different clients differ in. */
export interface KafkaClient {
  /** What has to be done before a publisher connects. */
  readonly prepare?: (deadline: Deadline) => Promise<void>;
  /** @param firstBroker which broker is asked first: one that is frozen takes the connection and then keeps silent */
  createSession(firstBroker: number): Session;
  /** What the client threw, in a word that does not depend on the client where there is one, and a sentence. */
  explain(error: unknown): PublishFailure;
}

export type Settled<T> = { readonly failed: false; readonly value: T } | { readonly failed: true; readonly error: unknown };

/** A promise that never rejects: nobody may be listening any more when it settles. */
export function settle<T>(promise: Promise<T>): Promise<Settled<T>> {
  return promise.then<Settled<T>, Settled<T>>(
    (value) => ({ failed: false, value }),
    (error: unknown) => ({ failed: true, error }),
  );
}

/** The items from one of them on, then those before it; past the end it counts on from the start. */
export function turned<T>(items: readonly T[], first: number): T[] {
  const at = first % Math.max(1, items.length);
  return [...items.slice(at), ...items.slice(0, at)];
}
