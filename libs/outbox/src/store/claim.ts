import type { LoggedMessage } from '../event/message';

/** How much a relay takes at once. */
export interface ClaimLimits {
  readonly lanes: number;
  readonly rows: number;
  /** One message may exceed it: then it comes alone. */
  readonly bytes: number;
}

/** A message that a relay has the right to send. */
export interface ClaimedMessage extends LoggedMessage {
  /** How often it was refused so far. */
  readonly attempts: number;
  /** Whether it comes from a key that was held, and now is due. */
  readonly held: boolean;
}

/** What a relay has taken: it alone may send these until the claim ends. */
export interface Claim {
  readonly lanes: readonly number[];
  /** Of each lane in the order of the log. */
  readonly messages: readonly ClaimedMessage[];
}

/** A message that was refused, and is to be tried again or given up. */
export interface RefusedMessage {
  readonly message: ClaimedMessage;
  readonly error: string;
}

/** What became of a claim's messages. Those in no list stay as they are and are claimed again. */
export interface Settlement {
  readonly sent: readonly ClaimedMessage[];
  readonly retried: readonly (RefusedMessage & { readonly delayMs: number })[];
  readonly parked: readonly RefusedMessage[];
}

/** One relay worker's hold on the store. A session has at most one claim at a time. */
export interface ClaimSession {
  /** Takes lanes that have something to send, and reads their heads. `undefined` when there is nothing to take. */
  claim(limits: ClaimLimits): Promise<Claim | undefined>;
  /** Records the outcome and gives the lanes back, together. Fails when the claim was lost. */
  settle(settlement: Settlement): Promise<void>;
  /** Gives the lanes back with nothing recorded. Never fails. */
  release(): Promise<void>;
  close(): Promise<void>;
}
