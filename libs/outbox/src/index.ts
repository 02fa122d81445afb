export { type ConsumerCounts, type ConsumerEvent, ConsumerEvents, type ConsumerListener } from './consume/consumer-events';
export type { ConsumerStatus } from './consume/consumer-status';
export type { LostGroup } from './consume/kafka-groups';
export { applyOnce, type Change } from './consume/apply-once';
export type { BatchMessage } from './consume/batch/batch-consumer';
export { IdempotentBatchConsumer } from './consume/batch/idempotent-batch-consumer.decorator';
export type { Consumed, Dedupe, MessageClaim } from './consume/dedupe';
export type {
  BatchConsumerOptions,
  ConsumeOptions,
  EventOf,
  IdempotentConsumerOptions,
  OnExhausted,
  RedisConsumerOptions,
  RetryOptions,
  SequenceOptions,
  SharedConsumeOptions,
  StateConsumerOptions,
  TableConsumerOptions,
} from './consume/consumer-options';
export type { MessageOrigin } from './consume/delivery';
export { IdempotentConsumer } from './consume/idempotent-consumer.decorator';
export {
  type BatchItem,
  type BatchRunOptions,
  type ConsumedBatch,
  type IdempotentRunOptions,
  IdempotentRunner,
} from './consume/idempotent-runner';
export {
  AlreadyAppliedError,
  ConsumerDuplicateError,
  ConsumerMisplacedError,
  DatabaseUnsupportedError,
  DataSourceMissingError,
  EventDuplicateError,
  EventInvalidError,
  EventNotDecoratedError,
  EventNotSerialisableError,
  EventTooLargeError,
  HandlerFailedError,
  HttpUnguardedError,
  IsolationConflictError,
  LanesBusyError,
  LanesMismatchError,
  LeaseLostError,
  MessageIdInvalidError,
  MessageIdMissingError,
  MessageInProgressError,
  MessageStaleError,
  NoTransactionError,
  OperationInvalidError,
  OutboxError,
  type OutboxErrorCode,
  OutboxModuleDuplicateError,
  OutboxNotInjectedError,
  OutboxOptionsError,
  PartitionsMissingError,
  PayloadUnreadableError,
  RedisUnavailableError,
  SavepointConflictError,
  SequenceInvalidError,
  SqliteNestedTransactionError,
  StateConflictError,
  TablesMissingError,
  TopicRefusedError,
  TransactionClosedError,
  TransactionDoomedError,
  WorkNotAwaitedError,
} from './errors';
export type { LoggedMessage, OutboxMessage } from './event/message';
export { currentMessageContext, type MessageContext, withMessageContext } from './event/message-context';
export { type KeyValue, OutboxEvent, type OutboxEventOptions } from './event/outbox-event.decorator';
export type { OutboxTracing, PublishedMessage, TracedMessage } from './event/tracing';
export type { RawMessage } from './event/raw-message';
export type { Instrument, Label, Labels } from './observe/metrics/instruments';
export type { OutboxMetrics, Reading } from './observe/metrics/outbox-metrics';
export { type ConsumerThresholds, type HealthResult, type LiveThresholds, OutboxHealthIndicator, type RelayThresholds } from './observe/health-indicator';
export { OutboxHealth, type OutboxHealthReport } from './observe/outbox-health';
export type { Target } from './operate/act-batches';
export type { Operator } from './operate/audit';
export type { Pass, PassOutcome, PurgeReport } from './operate/cleaner';
export type { DeadLetter, NotReplayable } from './operate/dead-letter-record';
export { type DeadLetterPage, DeadLetters, type LetterPlace, type ReplayResult } from './operate/dead-letters';
export { type Diagnosis, diagnoseOutbox, type DiagnosisOptions } from './operate/doctor/diagnose';
export type { CheckId, Finding, Verdict } from './operate/doctor/finding';
export type { KafkaClient } from './operate/kafka-topic';
export { type ActOptions, type ActResult, OutboxAdmin, type OutboxStats } from './operate/outbox-admin';
export type { PartitionRetention, RetentionOptions, RetentionRules, RowRetention } from './operate/retention-options';
export type { OutboxModuleAsyncOptions, OutboxModuleOptions } from './options';
export { OutboxModule } from './outbox.module';
export type { CloudEventsOptions } from './publish/cloud-events';
export type {
  Publisher,
  PublisherCapabilities,
  PublisherFactory,
  PublishFailure,
  PublishOptions,
  PublishOutcome,
  PublishRecord,
  RouteStatus,
} from './publish/publisher';
export { type Route, route, type TopicPattern } from './publish/route/route';
export type { TopicSpec } from './publish/topic-spec';
export { Relay, type RelayStatus } from './relay/relay';
export type { UnavailableTopic } from './relay/waiting-topics';
export type { RelayEventName, RelayEvents, RelayListener, RelayStage } from './relay/relay-events';
export type { ExhaustedMessage, RelayOptions } from './relay/relay-options';
export type { AfterParking } from './relay/settlement';
export type { AuditedAct, AuditFilter, AuditPage } from './store/audit';
export { type MigrationOptions, outboxMigrations } from './store/migration';
export type { FoundMessage, MessageContent, MessageFilter, MessagePage, TopicsReport, TopicStats } from './store/look';
export type { HeldKey, LaneStats, QueueReport } from './store/look-queue';
export type { MessageState } from './store/message-state';
export type { Backlog, Order } from './store/outbox-store';
export type { PurgeMode } from './store/purge';
export type { SchemaOptions, TableNames } from './store/tables';
export { Transactional, type TransactionalOptions } from './transaction/transactional.decorator';
export type { IsolationLevel, Propagation, TransactionOptions } from './transaction/transaction-options';
export { TransactionRunner } from './transaction/transaction-runner';
export { type Emitted, EmitsEvent, type EmitsEventOptions, type EventFields } from './write/emits-event.decorator';
export { EventCollector, type EventSource } from './write/event-source';
export type { ContextProvider } from './write/emit-context';
export { type EmitOptions, Outbox } from './write/outbox';
