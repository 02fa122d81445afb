import type { EntityManager } from 'typeorm';
import { NoTransactionError } from '../errors';
import { eventToMessage } from '../event/event-to-message';
import { currentMessageContext } from '../event/message-context';
import type { RawMessage } from '../event/raw-message';
import { toMessage } from '../event/to-message';
import type { AmbientTransactions } from '../transaction/ambient-transactions';
import type { TransactionScope } from '../transaction/transaction-scope';

export interface EmitOptions {
  /** A manager that is in a transaction of its own. Default: the transaction that the code is in. */
  readonly manager?: EntityManager;
}

/** Emits events into the transaction. */
export class Outbox {
  constructor(
    private readonly ambient: AmbientTransactions,
    private readonly maxMessageBytes: number,
  ) {}

  /**
   * Emits events: they are checked and serialised now, written to the outbox just before the transaction commits,
   * and published after it has. When it rolls back, whole or to a savepoint, they are gone.
   *
   * @throws NoTransactionError outside a transaction
   * @throws EventNotDecoratedError, EventInvalidError, EventNotSerialisableError, EventTooLargeError; none of the
   *   given events is then emitted
   */
  emit(events: object | readonly object[], options: EmitOptions = {}): void {
    const scope = this.scope(options.manager);
    const list = isList(events) ? events : [events];
    scope.add(list.map((event) => eventToMessage(event, this.maxMessageBytes, currentMessageContext())));
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
    scope.add(list.map((message) => toMessage(message, this.maxMessageBytes, currentMessageContext())));
  }

  /** @throws NoTransactionError outside a transaction */
  assertTransaction(): void {
    this.scope();
  }

  private scope(manager?: EntityManager): TransactionScope {
    const scope = manager ? this.ambient.scopeOf(manager) : this.ambient.current();
    if (!scope) {
      throw new NoTransactionError(
        'An event can only be emitted inside a transaction: decorate the method with @Transactional(), or pass the ' +
          'manager of your own transaction.',
      );
    }
    return scope;
  }
}

function isList<T extends object>(value: T | readonly T[]): value is readonly T[] {
  return Array.isArray(value);
}
