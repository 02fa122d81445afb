import { Logger } from '@nestjs/common';
import type { DataSource, QueryRunner } from 'typeorm';
import { BatchConsumer } from './consume/batch/batch-consumer';
import { ConsumerEvents } from './consume/consumer-events';
import { IdempotentRunner } from './consume/idempotent-runner';
import { MessageConsumer } from './consume/message-consumer';
import { Cleaner } from './operate/cleaner';
import { DeadLetters } from './operate/dead-letters';
import { OutboxAdmin } from './operate/outbox-admin';
import { PartitionCleaner } from './operate/partition-cleaner';
import { Meter } from './observe/metrics/meter';
import { traceRelay } from './observe/trace-relay';
import { OutboxHealth } from './observe/outbox-health';
import type { OutboxMessage } from './event/message';
import type { ResolvedOptions } from './options';
import { cloudEventFormat, reservedHeaders } from './publish/cloud-events';
import { toWireRecord } from './publish/wire-record';
import { type ClaimSessions, PooledClaimSessions, SerialClaimSessions } from './relay/claim-sessions';
import { Relay } from './relay/relay';
import { CommitSignal } from './store/commit-signal';
import { detectDialect } from './store/detect-dialect';
import { createTables } from './store/migration';
import { OutboxStore } from './store/outbox-store';
import { AmbientTransactions } from './transaction/ambient-transactions';
import { TransactionRunner } from './transaction/transaction-runner';
import { EmitContext } from './write/emit-context';
import { EventSourceSubscriber } from './write/event-source';
import type { EventTypes } from './write/event-types';
import { Outbox } from './write/outbox';

/** The parts of one data source's outbox, put together. */
export class OutboxCore {
  readonly transactions: TransactionRunner;
  readonly outbox: Outbox;
  readonly consumerEvents = new ConsumerEvents();
  readonly idempotent: IdempotentRunner;
  readonly consumers: MessageConsumer;
  readonly batches: BatchConsumer;
  readonly relay: Relay;
  readonly health: OutboxHealth;
  readonly admin: OutboxAdmin;
  readonly deadLetters: DeadLetters;
  readonly cleaner: Cleaner;
  /** Whether this process cleans. */
  readonly cleans: boolean;
  private readonly ambient: AmbientTransactions;
  private readonly meter: Meter | undefined;
  private readonly subscriber: EventSourceSubscriber;

  private constructor(
    options: ResolvedOptions,
    private readonly dataSource: DataSource,
    store: OutboxStore,
    types: EventTypes,
    name: string,
  ) {
    const { commitSignal } = store.dialect;
    const signal = commitSignal ? new CommitSignal(dataSource, commitSignal.send) : undefined;
    this.ambient = new AmbientTransactions(dataSource, {
      flush: (queryRunner, messages) => this.write(store, queryRunner, messages),
      onWritten: () => (this.relay.isRunning ? this.relay.wake() : signal?.send()),
    });
    this.transactions = new TransactionRunner(this.ambient);
    this.outbox = new Outbox(this.ambient, {
      maxMessageBytes: options.maxMessageBytes,
      context: new EmitContext(options.context),
      reservedHeaders: reservedHeaders(options.cloudEvents),
      types,
      ambientManager: options.ambientManager,
    });
    this.subscriber = new EventSourceSubscriber((queryRunner, source) => this.outbox.drain(queryRunner, source));
    this.idempotent = new IdempotentRunner(this.ambient, this.transactions, store, this.consumerEvents, options.consume.redis);
    this.consumers = new MessageConsumer({
      ambient: this.ambient,
      transactions: this.transactions,
      store,
      runner: this.idempotent,
      events: this.consumerEvents,
      defaults: options.consume,
      tracing: options.tracing,
    });
    this.batches = new BatchConsumer(this.consumers, this.idempotent, options.tracing);
    const concurrency = this.ambient.serial ? 1 : options.relay.concurrency;
    const { sessionTimeout } = options.relay;
    const sessions = (workers: number): ClaimSessions =>
      this.ambient.serial
        ? new SerialClaimSessions(store, () => this.ambient.createQueryRunner())
        : new PooledClaimSessions(store, dataSource.options, { workers, sessionTimeout });
    const format = options.cloudEvents ? cloudEventFormat(options.cloudEvents) : toWireRecord;
    this.relay = new Relay(sessions(concurrency), options.publisher, store, { ...options.relay, concurrency }, format);
    if (options.tracing) traceRelay(this.relay, options.tracing);
    this.cleaner = new Cleaner(store, () => sessions(1), options.retention);
    this.admin = new OutboxAdmin(dataSource, store, () => sessions(1), this.cleaner, () => this.relay.wake());
    this.deadLetters = new DeadLetters(this.ambient, this.transactions, store, this.admin);
    this.cleans = options.cleans;
    this.health = new OutboxHealth(dataSource, store, this.relay, options.publisher, this.consumerEvents);
    this.meter = options.metrics && new Meter({
      metrics: options.metrics,
      dataSource: name,
      maxMessageBytes: options.maxMessageBytes,
      sql: { query: (statement) => this.ambient.outside(() => dataSource.query(statement)) },
      store,
      relay: this.relay,
      publisher: options.publisher,
      consumers: this.consumerEvents,
      purged: () => this.cleaner.status().purged,
    });
  }

  /**
   * Looks at the database and joins the data source.
   *
   * @throws DatabaseUnsupportedError, TablesMissingError, LanesMismatchError, PartitionsMissingError
   */
  static async create(options: ResolvedOptions, dataSource: DataSource, types: EventTypes, name: string): Promise<OutboxCore> {
    const dialect = await detectDialect(dataSource.options, dataSource, options.tables);
    const { mode } = options.retention;
    if (options.createTables) await createTables(dataSource, dialect, options.lanes, mode === 'partition');
    const store = new OutboxStore(dialect, options.lanes, options.order);
    await store.check(dataSource);
    if (mode === 'partition') await new PartitionCleaner(store).check(dataSource);
    if (dialect.laneLocks === 'named-locks' && options.relay.enabled) {
      new Logger('Outbox').log(`This ${dialect.name} server cannot pass by locked rows: lanes are locked by name.`);
    }
    const core = new OutboxCore(options, dataSource, store, types, name);
    core.join();
    await core.meter?.start();
    return core;
  }

  async onApplicationShutdown(): Promise<void> {
    this.meter?.stop();
    await this.admin.close();
    this.ambient.leave();
    const { subscribers } = this.dataSource;
    const index = subscribers.indexOf(this.subscriber);
    if (index >= 0) subscribers.splice(index, 1);
  }

  private async write(store: OutboxStore, queryRunner: QueryRunner, messages: readonly OutboxMessage[]): Promise<void> {
    await store.add(queryRunner, messages);
    const { meter } = this;
    if (meter) this.ambient.scopeOn(queryRunner).onCommitFirst(() => meter.emitted(messages));
  }

  private join(): void {
    this.ambient.join();
    this.dataSource.subscribers.push(this.subscriber);
  }
}
