import type { Type } from '@nestjs/common';
import type { EntityManager, QueryRunner } from 'typeorm';
import { NoTransactionError } from '../errors';
import { eventToMessage } from '../event/event-to-message';
import type { OutboxMessage } from '../event/message';
import type { RawMessage } from '../event/raw-message';
import { toMessage } from '../event/to-message';
import type { AmbientTransactions } from '../transaction/ambient-transactions';
import type { TransactionScope } from '../transaction/transaction-scope';
import type { EmitContext } from './emit-context';
import type { EventSource } from './event-source';
import type { EventTypes } from './event-types';

export interface EmitOptions {
  /** A manager that is in a transaction of its own. Default: the transaction that the code is in. */
  readonly manager?: EntityManager;
}

export interface OutboxOptions {
  /** Largest message, in bytes of payload, key and headers. */
  readonly maxMessageBytes: number;
  readonly context: EmitContext;
  /** Headers that no message may bring along. */
  readonly reservedHeaders: ReadonlySet<string>;
  readonly types: EventTypes;
  /** The manager of a transaction that another library keeps around the code, if there is one. */
  readonly ambientManager: (() => EntityManager | undefined) | undefined;
}

/** Emits events into the transaction. */
export class Outbox {
  private readonly drained = new WeakMap<TransactionScope, Map<EventSource, readonly object[]>>();
  /** Events of sources that have been emitted and are still in their lists. */
  private readonly emitted = new WeakSet<object>();

  constructor(
    private readonly ambient: AmbientTransactions,
    private readonly options: OutboxOptions,
  ) {}

  /**
   * Emits events: they are checked and serialised now, written to the outbox just before the transaction commits,
   * and published after it has. When it rolls back, whole or to a savepoint, they are gone.
   *
   * @throws NoTransactionError outside a transaction
   * @throws EventNotDecoratedError, EventInvalidError, EventNotSerialisableError, EventTooLargeError,
   *   EventDuplicateError; none of the
   *   given events is then emitted
   */
  emit(events: object | readonly object[], options: EmitOptions = {}): void {
    const scope = this.scope(options.manager);
    const list = isList(events) ? events : [events];
    scope.add(this.toMessages(list));
  }

  /**
   * Emits messages that are not made of event classes. What they hold is checked as for events, their payload is sent
   * as it is.
   *
   * @throws NoTransactionError, EventInvalidError, EventTooLargeError; none of the given messages is then emitted
   */
  emitRaw(messages: RawMessage | readonly RawMessage[], options: EmitOptions = {}): void {
    const scope = this.scope(options.manager);
    const list = isList(messages) ? messages : [messages];
    const { maxMessageBytes, context, reservedHeaders } = this.options;
    scope.add(list.map((message) => toMessage(message, maxMessageBytes, context.current(), reservedHeaders)));
  }

  /** Emits what the source has collected when the transaction of the query runner commits. */
  drain(queryRunner: QueryRunner, source: EventSource): void {
    if (!queryRunner.isTransactionActive) return;
    const scope = this.ambient.scopeOn(queryRunner);
    const drained = this.drained.get(scope) ?? new Map();
    this.drained.set(scope, drained);
    scope.onFlush(() => {
      // An entity may be saved several times in a transaction; its events are emitted once.
      if (drained.has(source)) return;
      if (drained.size === 0) {
        scope.onCommitFirst(() => {
          for (const [each, events] of drained) this.markEmitted(each, events);
        });
      }
      const events = source.getUncommittedEvents();
      drained.set(source, events);
      scope.add(this.toMessages(events.filter((event) => !this.emitted.has(event))));
    });
  }

  /**
   * Says that a method begins that will emit; the returned function, that it has ended.
   *
   * @throws NoTransactionError outside a transaction
   */
  enter(): () => void {
    this.scope();
    return this.ambient.enter();
  }

  /** Refuses the commit of the transaction whose event could not be emitted. */
  spoil(cause: unknown): void {
    try {
      this.scope().spoil(cause);
    } catch {
      // It has ended without it.
    }
  }

  /** What the entity has recorded since must stay; what was emitted is then remembered instead of taken from it. */
  private markEmitted(source: EventSource, events: readonly object[]): void {
    for (const event of events) this.emitted.add(event);
    if (source.getUncommittedEvents().length === events.length) source.uncommit();
  }

  private toMessages(events: readonly object[]): readonly OutboxMessage[] {
    const context = this.options.context.current();
    return events.map((event) => {
      this.options.types.add(event.constructor as Type<object>);
      return eventToMessage(event, this.options.maxMessageBytes, context, this.options.reservedHeaders);
    });
  }

  private scope(manager?: EntityManager): TransactionScope {
    const scope = manager ? this.ambient.scopeOf(manager) : (this.ambient.current() ?? this.foreignScope());
    if (!scope) {
      throw new NoTransactionError(
        'An event can only be emitted inside a transaction: decorate the method with @Transactional(), or pass the ' +
          'manager of your own transaction.',
      );
    }
    return scope;
  }

  private foreignScope(): TransactionScope | undefined {
    const manager = this.options.ambientManager?.();
    return manager?.queryRunner?.isTransactionActive ? this.ambient.scopeOf(manager) : undefined;
  }
}

function isList<T extends object>(value: T | readonly T[]): value is readonly T[] {
  return Array.isArray(value);
}
