import type { Patience } from '../store/dialect';

/** What became of a message: handled now, or recognised as handled before. */
export type Consumed<T> = { readonly duplicate: false; readonly result: T } | { readonly duplicate: true };

/** One message at one consumer. */
export interface MessageClaim {
  readonly consumer: string;
  readonly messageId: string;
  /** What to do while another copy of the message is being handled. */
  readonly concurrentCopies: Patience;
}

/** A way to recognise what has been handled before. */
export interface Dedupe {
  /**
   * Runs the handler unless the message has been handled; when it rejects, the message can be tried again.
   *
   * @throws MessageInProgressError when another copy is being handled and does not end in time
   */
  run<T>(claim: MessageClaim, handler: () => Promise<T>): Promise<Consumed<T>>;
}
