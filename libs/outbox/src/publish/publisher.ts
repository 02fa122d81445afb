/** One record as it goes on the wire; `docs/wire-format.md` has it byte by byte. */
export interface PublishRecord {
  readonly messageId: string;
  readonly topic: string;
  readonly key: string | null;
  readonly value: string | null;
  /** In the order in which they are written. */
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds since 1970, UTC. */
  readonly timestamp: number;
}

/** Why a record was not acknowledged. */
export interface PublishFailure {
  /**
   * A stable word: the broker's error name where it gave one, such as `MESSAGE_TOO_LARGE`. Of `unknown` the relay knows
   * some: `UNKNOWN_TOPIC_OR_PARTITION` (the topic does not exist), `NOT_ENOUGH_REPLICAS` (the topic takes nothing now),
   * what begins with `BEHIND_` (not sent, since an earlier record of its key failed); anything else is an outage to it.
   * `docs/own-publisher.md` says more.
   */
  readonly code: string;
  readonly message: string;
}

/**
 * What became of one record:
 *
 * - `acknowledged`: the broker has it, and said so for its topic and partition by name.
 * - `refused`: the broker or the client will not take this record, now or later, for a reason of its own (too
 *   large, invalid, unauthorised). It counts as an attempt.
 * - `unknown`: no answer, or an answer that says nothing of the record (outage, timeout, missing topic). It may or
 *   may not be on the topic; sending it again can only make a duplicate. It does not count as an attempt.
 */
export type PublishOutcome =
  | { readonly status: 'acknowledged'; readonly partition: number; readonly offset: string | null }
  | { readonly status: 'refused'; readonly failure: PublishFailure }
  | { readonly status: 'unknown'; readonly failure: PublishFailure };

export interface PublishOptions {
  /** Milliseconds after which unanswered records are `unknown`. Includes the client's own retries. */
  readonly timeout: number;
}

/**
 * The road to a broker. A relay worker owns one publisher and never calls `publish` twice at the same time.
 *
 * A publisher must hold to three rules, on which the promises of the outbox rest:
 *
 * 1. It says `acknowledged` only of a record that the broker named as stored.
 * 2. When `publish` has returned, nothing of that batch is still on its way: a send that timed out is stopped (the
 *    client is closed if need be) before the promise settles, so that no late copy can land behind newer messages.
 * 3. Within a batch, records of one (topic, key) are stored in the given order, or not at all after the first of
 *    them that is not.
 */
export interface Publisher {
  /** Connects ahead of the first `publish`. Rejects when the broker does not answer. */
  connect(): Promise<void>;
  /** One outcome for each record, in the same order. Rejects only on misuse, never because of the broker. */
  publish(records: readonly PublishRecord[], options: PublishOptions): Promise<readonly PublishOutcome[]>;
  /** Releases all resources. Safe to call at any time, more than once. */
  close(): Promise<void>;
}

/** How one of several roads to brokers is. */
export interface RouteStatus {
  readonly name: string;
  /** Why nothing can be sent on it, if so, in the words of its publisher. */
  readonly trouble: { readonly message: string; readonly since: Date } | null;
}

/** What a broker cannot do. What is not said, it can. */
export interface PublisherCapabilities {
  /** `false`: it keeps no order of the records of a key. The module then starts with `order: 'none'` only. */
  readonly order?: boolean;
  /** `false`: it has no record without a value. An event whose payload is `null` is then refused, with `NO_TOMBSTONES`. */
  readonly tombstones?: boolean;
}

/** Makes the publisher of one relay worker. */
export interface PublisherFactory {
  (): Publisher;
  readonly capabilities?: PublisherCapabilities;
  /**
   * Called when the process that relays starts: does what can be done ahead, such as creating topics. Rejects with an
   * `OutboxError` that is not retryable to keep the app from starting; anything else is left to `connect`.
   */
  readonly prepare?: () => Promise<void>;
  /** How the roads behind it are, where there are several; for health. */
  readonly routes?: () => readonly RouteStatus[];
}
