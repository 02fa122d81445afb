import type { EntityManager } from 'typeorm';
import { NoTransactionError } from '../errors';
import { eventToMessage } from '../event/event-to-message';
import { currentMessageContext } from '../event/message-context';
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
    const list = Array.isArray(events) ? (events as readonly object[]) : [events];
    scope.add(list.map((event) => eventToMessage(event, this.maxMessageBytes, currentMessageContext())));
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
