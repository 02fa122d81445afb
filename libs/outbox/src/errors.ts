/** Every code that an {@link OutboxError} can carry. `docs/errors.md` says what to do about each. */
export type OutboxErrorCode =
  | 'OUTBOX_OPTIONS_INVALID'
  | 'OUTBOX_MODULE_DUPLICATE'
  | 'OUTBOX_DATA_SOURCE_MISSING'
  | 'OUTBOX_DATABASE_UNSUPPORTED'
  | 'OUTBOX_TABLES_MISSING'
  | 'OUTBOX_LANES_MISMATCH'
  | 'OUTBOX_PARTITIONS_MISSING'
  | 'OUTBOX_TOPIC_REFUSED'
  | 'OUTBOX_NOT_INJECTED'
  | 'OUTBOX_EVENT_NOT_DECORATED'
  | 'OUTBOX_EVENT_DUPLICATE'
  | 'OUTBOX_EVENT_INVALID'
  | 'OUTBOX_EVENT_NOT_SERIALISABLE'
  | 'OUTBOX_EVENT_TOO_LARGE'
  | 'OUTBOX_NO_TRANSACTION'
  | 'OUTBOX_TRANSACTION_CLOSED'
  | 'OUTBOX_TRANSACTION_DOOMED'
  | 'OUTBOX_ISOLATION_CONFLICT'
  | 'OUTBOX_SAVEPOINT_CONFLICT'
  | 'OUTBOX_WORK_NOT_AWAITED'
  | 'OUTBOX_SQLITE_NESTED_TRANSACTION'
  | 'OUTBOX_MESSAGE_ID_MISSING'
  | 'OUTBOX_MESSAGE_ID_INVALID'
  | 'OUTBOX_MESSAGE_IN_PROGRESS'
  | 'OUTBOX_ALREADY_APPLIED'
  | 'OUTBOX_STATE_CONFLICT'
  | 'OUTBOX_LEASE_LOST'
  | 'OUTBOX_REDIS_UNAVAILABLE'
  | 'OUTBOX_SEQUENCE_INVALID'
  | 'OUTBOX_MESSAGE_STALE'
  | 'OUTBOX_PAYLOAD_UNREADABLE'
  | 'OUTBOX_HANDLER_FAILED'
  | 'OUTBOX_CONSUMER_DUPLICATE'
  | 'OUTBOX_CONSUMER_MISPLACED'
  | 'OUTBOX_OPERATION_INVALID'
  | 'OUTBOX_LANES_BUSY'
  | 'OUTBOX_HTTP_UNGUARDED';

/** What every error of this library is: a stable code, whether trying again can help, and the cause. */
export abstract class OutboxError extends Error {
  abstract readonly code: OutboxErrorCode;
  /** Whether the same call may succeed when it is made again. */
  readonly retryable: boolean = false;

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** An option is unknown, missing or of the wrong kind. Thrown at boot. */
export class OutboxOptionsError extends OutboxError {
  readonly code = 'OUTBOX_OPTIONS_INVALID';
}

/** The module was imported twice for one data source. Thrown at boot. */
export class OutboxModuleDuplicateError extends OutboxError {
  readonly code = 'OUTBOX_MODULE_DUPLICATE';
}

/** The app provides no data source of that name. Thrown at boot. */
export class DataSourceMissingError extends OutboxError {
  readonly code = 'OUTBOX_DATA_SOURCE_MISSING';
}

/** The database is of a kind or version that the outbox does not work with. Thrown at boot. */
export class DatabaseUnsupportedError extends OutboxError {
  readonly code = 'OUTBOX_DATABASE_UNSUPPORTED';
}

/** The outbox tables are not there. Thrown at boot. */
export class TablesMissingError extends OutboxError {
  readonly code = 'OUTBOX_TABLES_MISSING';
}

/** The tables were made for another number of lanes than the options say. Thrown at boot. */
export class LanesMismatchError extends OutboxError {
  readonly code = 'OUTBOX_LANES_MISMATCH';
}

/** `retention.mode` is `partition`, and the log is not partitioned. Thrown at boot, and by `purge`. */
export class PartitionsMissingError extends OutboxError {
  readonly code = 'OUTBOX_PARTITIONS_MISSING';
}

/** The broker will not create a topic that `topics` asks for. Thrown at boot. */
export class TopicRefusedError extends OutboxError {
  readonly code = 'OUTBOX_TOPIC_REFUSED';
}

/** A decorated method was called on an object that Nest did not make, or in an app without the module. */
export class OutboxNotInjectedError extends OutboxError {
  readonly code = 'OUTBOX_NOT_INJECTED';
}

/** An object was emitted whose class has no `@OutboxEvent`. */
export class EventNotDecoratedError extends OutboxError {
  readonly code = 'OUTBOX_EVENT_NOT_DECORATED';
}

/** Two classes emit events of one type, so consumers could not tell them apart. Thrown at boot where it can be known. */
export class EventDuplicateError extends OutboxError {
  readonly code = 'OUTBOX_EVENT_DUPLICATE';
}

/** An event failed validation; `fields` names what and why. Nothing of the transaction stays. */
export class EventInvalidError extends OutboxError {
  readonly code = 'OUTBOX_EVENT_INVALID';

  constructor(
    message: string,
    /** Path of each field that failed, with the reasons. */
    readonly fields: Readonly<Record<string, readonly string[]>>,
  ) {
    super(message);
  }
}

/** An event holds something that JSON would lose or change; `path` says where. */
export class EventNotSerialisableError extends OutboxError {
  readonly code = 'OUTBOX_EVENT_NOT_SERIALISABLE';

  constructor(
    message: string,
    /** Where in the event, such as `$.lines[2].total`. */
    readonly path: string,
  ) {
    super(message);
  }
}

/** The serialised event is larger than `maxMessageBytes`. */
export class EventTooLargeError extends OutboxError {
  readonly code = 'OUTBOX_EVENT_TOO_LARGE';
}

/** An event was emitted, or MANDATORY asked for, where no transaction is open. */
export class NoTransactionError extends OutboxError {
  readonly code = 'OUTBOX_NO_TRANSACTION';
}

/** Work went on after its transaction had ended. The statement was not sent. */
export class TransactionClosedError extends OutboxError {
  readonly code = 'OUTBOX_TRANSACTION_CLOSED';
}

/** The database had undone the transaction, or a part of it, before the commit; `cause` is why. Nothing stays. */
export class TransactionDoomedError extends OutboxError {
  readonly code = 'OUTBOX_TRANSACTION_DOOMED';
  override readonly retryable = true;
}

/** A joined transaction was asked to run at another isolation level than it has. */
export class IsolationConflictError extends OutboxError {
  readonly code = 'OUTBOX_ISOLATION_CONFLICT';
}

/** Two branches of one transaction work side by side, and one of them has a savepoint open. */
export class SavepointConflictError extends OutboxError {
  readonly code = 'OUTBOX_SAVEPOINT_CONFLICT';
}

/** The work of a transaction or savepoint ended while a method that belongs to it still ran. It is rolled back. */
export class WorkNotAwaitedError extends OutboxError {
  readonly code = 'OUTBOX_WORK_NOT_AWAITED';
}

/** SQLite has one connection, so a second transaction inside a first would wait for itself. */
export class SqliteNestedTransactionError extends OutboxError {
  readonly code = 'OUTBOX_SQLITE_NESTED_TRANSACTION';
}

/** A consumed message carries no id to recognise repeats by. */
export class MessageIdMissingError extends OutboxError {
  readonly code = 'OUTBOX_MESSAGE_ID_MISSING';
}

/** A message id is too long, or not of the form asked for. */
export class MessageIdInvalidError extends OutboxError {
  readonly code = 'OUTBOX_MESSAGE_ID_INVALID';
}

/** Another copy of the message is being handled; when that has ended, this one is a repeat or is handled itself. */
export class MessageInProgressError extends OutboxError {
  readonly code = 'OUTBOX_MESSAGE_IN_PROGRESS';
  override readonly retryable = true;
}

/** The effect of a message is there already. A consumer with `dedupe: 'state'` takes it for a duplicate. */
export class AlreadyAppliedError extends OutboxError {
  readonly code = 'OUTBOX_ALREADY_APPLIED';
}

/** A message found nothing to change, though its effect is not there: the row is missing, or not there yet. */
export class StateConflictError extends OutboxError {
  readonly code = 'OUTBOX_STATE_CONFLICT';
  override readonly retryable = true;
}

/** With `dedupe: 'redis'`: a handler has run, but its claim had ended meanwhile, so that it may run again. */
export class LeaseLostError extends OutboxError {
  readonly code = 'OUTBOX_LEASE_LOST';
  override readonly retryable = true;
}

/** With `dedupe: 'redis'`: Redis does not answer. The message comes again; no attempt is counted. */
export class RedisUnavailableError extends OutboxError {
  readonly code = 'OUTBOX_REDIS_UNAVAILABLE';
  override readonly retryable = true;
}

/** The `sequence` option of a consumer gives no place, or no key, for a message. */
export class SequenceInvalidError extends OutboxError {
  readonly code = 'OUTBOX_SEQUENCE_INVALID';
}

/** A message is older than the last one of its key that was handled. */
export class MessageStaleError extends OutboxError {
  readonly code = 'OUTBOX_MESSAGE_STALE';
}

/** The value of a consumed message is not what its consumer takes: no value at all, or not a JSON object. */
export class PayloadUnreadableError extends OutboxError {
  readonly code = 'OUTBOX_PAYLOAD_UNREADABLE';
}

/** A handler failed; `cause` is its error, which by itself would have made the Kafka client stop for good. */
export class HandlerFailedError extends OutboxError {
  readonly code = 'OUTBOX_HANDLER_FAILED';
  override readonly retryable = true;
}

/** Two handlers have one consumer name, so each would take the other's messages for repeats. Thrown at boot. */
export class ConsumerDuplicateError extends OutboxError {
  readonly code = 'OUTBOX_CONSUMER_DUPLICATE';
}

/** `@IdempotentConsumer` stands where it has no effect: on something that handles no messages. Thrown at boot. */
export class ConsumerMisplacedError extends OutboxError {
  readonly code = 'OUTBOX_CONSUMER_MISPLACED';
}

/** An operation was asked for in a way that cannot be done, or without saying who asks and why. Nothing was done. */
export class OperationInvalidError extends OutboxError {
  readonly code = 'OUTBOX_OPERATION_INVALID';
}

/**
 * A relay has kept the lanes of messages for too long to wait for them, or the cleaner has kept taking some of them away.
 * What was done before stays done.
 */
export class LanesBusyError extends OutboxError {
  readonly code = 'OUTBOX_LANES_BUSY';
  override readonly retryable = true;
}

/** `OutboxHttpModule` was given no guard, and not told either that everybody may use it. Thrown at boot. */
export class HttpUnguardedError extends OutboxError {
  readonly code = 'OUTBOX_HTTP_UNGUARDED';
}
