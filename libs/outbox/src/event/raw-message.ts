/** A message without an event class, for bridges that pass on what others made. */
export interface RawMessage {
  readonly topic: string;
  readonly type: string;
  /** The record's value, sent untouched. `null` is a tombstone. */
  readonly payload: string | null;
  /** Default `null`: no key and no order. */
  readonly key?: string | null;
  /** Default: the key, or the message id. */
  readonly aggregateId?: string;
  /** Default: the topic. */
  readonly aggregateType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A UUID that consumers recognise repeats by. Default: a new one, of version 7. */
  readonly messageId?: string;
}
