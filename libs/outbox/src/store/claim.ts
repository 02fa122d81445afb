import type { LoggedMessage } from '../event/message';

/** How much a relay takes at once. */
export interface ClaimLimits {
  readonly lanes: number;
  readonly rows: number;
  /** One message may exceed it: then it comes alone. */
  readonly bytes: number;
}

/** Where a message waits: among those never refused, behind its key, or with others of a topic that does not exist. */
export type Source = 'pending' | 'key-hold' | 'topic-hold';

/** A message that a relay has the right to send. */
export interface ClaimedMessage extends LoggedMessage {
  /** How often it was refused so far. */
  readonly attempts: number;
  readonly source: Source;
  readonly bytes: number;
  /** Why it cannot be sent as it is, if so: somebody has changed its row. */
  readonly defect: string | null;
}

/** What a relay has taken: it alone may send these until the claim ends. */
export interface Claim {
  readonly lanes: readonly number[];
  /** Of each lane in the order of the log. */
  readonly messages: readonly ClaimedMessage[];
  /** Ids that wait to be sent and are not in the log: somebody has deleted them. Settling forgets them. */
  readonly orphans: readonly string[];
}

/** A message that was refused, and is to be tried again or given up. */
export interface RefusedMessage {
  readonly message: ClaimedMessage;
  readonly error: string;
}

/** A message that is tried again after a pause. */
export interface RetriedMessage extends RefusedMessage {
  readonly delayMs: number;
}

/** A message that is given up. */
export interface ParkedMessage extends RefusedMessage {
  /** Whether the later messages of its key wait until somebody decides. */
  readonly blocks: boolean;
}

/** A message whose topic takes nothing, such as one that does not exist. It waits with all others of the topic, and that counts as no attempt. */
export interface WaitingMessage {
  readonly message: ClaimedMessage;
  readonly delayMs: number;
}

/** What became of a claim's messages. Those in no list stay as they are and are claimed again. */
export interface Settlement {
  readonly sent: readonly ClaimedMessage[];
  readonly retried: readonly RetriedMessage[];
  readonly parked: readonly ParkedMessage[];
  readonly waiting: readonly WaitingMessage[];
}

/** One relay worker's hold on the store. A session has at most one claim at a time. */
export interface ClaimSession {
  /** Takes lanes that have something to send, and reads their heads. `undefined` when there is nothing to take. */
  claim(limits: ClaimLimits): Promise<Claim | undefined>;
  /**
   * Records the outcome and gives the lanes back, together.
   *
   * @throws ClaimLostError when others have had the lanes in the meantime; nothing is recorded
   */
  settle(settlement: Settlement): Promise<void>;
  /** Gives the lanes back with nothing recorded. Never fails. */
  release(): Promise<void>;
  /** Has the listener called when the session ends by itself, and with it the right to send. */
  onLost(listener: (cause: Error) => void): void;
  close(): Promise<void>;
}

/** The lanes of a claim were lost before it was settled. */
export class ClaimLostError extends Error {
  override readonly name = 'ClaimLostError';
}
