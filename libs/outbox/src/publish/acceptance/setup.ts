import type { PublisherFactory } from '../publisher';

/** A record as a client that knows nothing of the publisher reads it. */
export interface ReadRecord {
  /** 0 where the broker has no partitions. */
  readonly partition: number;
  /** Its place, as the publisher names it; `null` where the broker gives none. */
  readonly offset: string | null;
  readonly key: string | null;
  readonly value: string | null;
  /** In the order of the wire. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Milliseconds since 1970, UTC. */
  readonly timestamp: number;
}

export interface TopicRequest {
  /** How many partitions to give it, where the broker has any. */
  readonly partitions: number;
}

/** Something that is done to the broker, and undone. Each resolves when it has taken effect. */
export interface Fault {
  start(): Promise<void>;
  end(): Promise<void>;
}

/**
 * A broker, and the publisher that is tried on it. What is optional is for what not every broker has, or not every
 * test can do: without it the cases that need it are skipped, and say so.
 */
export interface PublisherSetup {
  readonly create: PublisherFactory;
  /** Makes a topic that is ready to be written to, with a name of its own. */
  createTopic(request: TopicRequest): Promise<string>;
  /** All that is on the topic, partition by partition, each in the order of the broker. */
  read(topic: string): Promise<readonly ReadRecord[]>;
  /** Removes a topic when its case is over. */
  removeTopic?(topic: string): Promise<void>;
  /** Makes a topic that takes records of 10 KB and refuses those of 30 KB. */
  createNarrowTopic?(request: TopicRequest): Promise<string>;
  /** A name that no topic can ever have. */
  readonly impossibleTopic?: string;
  /** A name of a topic that could exist and does not; absent where the first record makes its topic. */
  readonly missingTopic?: () => string;
  /** The broker is gone: connections break, new ones are refused. */
  readonly outage?: Fault;
  /** The broker is there and silent: connections stay, answers do not come (such as SIGSTOP and SIGCONT). */
  readonly silence?: Fault;
}

/** One case, for the `it` of any test runner. */
export interface AcceptanceCase {
  readonly name: string;
  /** Why the case cannot run with this setup, or `null`. */
  readonly skipped: string | null;
  /** Rejects when the publisher fails the case, and when the case is one to be skipped. */
  run(): Promise<void>;
}
