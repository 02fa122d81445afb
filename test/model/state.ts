/**
 * The outbox as a model: one key in one lane, two writers, two relays, one broker. Everything that happens at once in
 * the real thing (a statement, a commit, a record that the broker appends) is one step; everything between two steps
 * may be interrupted by any other.
 */
export interface State {
  readonly writers: readonly Writer[];
  /** Who holds the order bucket of the key, by index. */
  readonly bucket: number | null;
  /** The id that the next insert is given. */
  readonly nextId: number;
  /** Messages, as `id`, in the order in which their transactions committed. */
  readonly committed: readonly number[];
  /** Committed, and waiting to be claimed. In the order of ids. */
  readonly pending: readonly number[];
  /** Messages of the held key; `null`: the key is not held. */
  readonly hold: { readonly ids: readonly number[]; readonly due: boolean } | null;
  readonly parked: readonly number[];
  /** How often each message was refused, by id. */
  readonly refusals: Readonly<Record<number, number>>;
  /** Which relay's transaction holds the lane. */
  readonly lane: number | null;
  readonly relays: readonly Relay[];
  readonly topic: readonly number[];
  /** What may still go wrong. */
  readonly left: { readonly crashes: number; readonly cuts: number; readonly refusals: number };
  /** A relay that had lost its connection went on. */
  readonly zombie: boolean;
  /** A settle has removed what another had removed. */
  readonly settledTwice: boolean;
}

export interface Writer {
  /** Transactions still to be begun. */
  readonly left: number;
  /** The id of the open transaction's message, once it is inserted. */
  readonly inserted: number | null;
}

/** `null`: idle. */
export type Relay = {
  readonly batch: readonly number[];
  /** Whether the batch was read from the hold. */
  readonly held: boolean;
  /** Pending messages of the held key, moved to the hold when the claim commits. */
  readonly followers: readonly number[];
  /** How many of the batch the broker has answered. */
  readonly answered: number;
  readonly sent: readonly number[];
  readonly refused: number | null;
  /** False when the database has ended the session, and with it the transaction, and the relay does not know. */
  readonly connected: boolean;
} | null;

/** What makes the design safe, each to be taken out. */
export interface Safeguards {
  /** A relay claims only a lane that no other has locked. */
  readonly laneLock: boolean;
  /** A claim is settled on the connection that holds the lane, or not at all. */
  readonly fencing: boolean;
  /** What follows a refused message of its key waits. */
  readonly keyHold: boolean;
  /** Ids of a key are given in the order of commits. */
  readonly orderLock: boolean;
}

export const ALL_SAFEGUARDS: Safeguards = { laneLock: true, fencing: true, keyHold: true, orderLock: true };

/** Refusals after which a message is parked. */
export const MAX_ATTEMPTS = 2;
/** Messages that a relay claims at once. */
export const BATCH = 2;

export const START: State = {
  writers: [
    { left: 2, inserted: null },
    { left: 1, inserted: null },
  ],
  bucket: null,
  nextId: 1,
  committed: [],
  pending: [],
  hold: null,
  parked: [],
  refusals: {},
  lane: null,
  relays: [null, null],
  topic: [],
  left: { crashes: 1, cuts: 1, refusals: MAX_ATTEMPTS },
  zombie: false,
  settledTwice: false,
};
