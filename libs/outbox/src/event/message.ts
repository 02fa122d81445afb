/** A message as `emit` makes it: checked, serialised and final, but not yet in the log. */
export interface OutboxMessage {
  /** The id that consumers recognise repeats by: a UUID, version 7 unless the caller gave one. */
  readonly messageId: string;
  readonly topic: string;
  /** Messages of one (topic, key) keep their order. `null`: no order, any partition. */
  readonly key: string | null;
  /** The stable name of the event's type, such as `order.created`. */
  readonly type: string;
  readonly aggregateType: string;
  readonly aggregateId: string;
  readonly tenantId: string | null;
  readonly traceparent: string | null;
  readonly correlationId: string | null;
  readonly causationId: string | null;
  /** The user's own headers. */
  readonly headers: Readonly<Record<string, string>>;
  /** The text that becomes the record's value, untouched. `null` is a tombstone. */
  readonly payload: string | null;
}

/** A message read back from the log. */
export interface LoggedMessage extends OutboxMessage {
  /** Place in the log, as decimal text: it may exceed what a JavaScript number holds. */
  readonly id: string;
  readonly lane: number;
  /** Milliseconds since 1970, UTC, by the database's clock. */
  readonly createdAt: number;
}
