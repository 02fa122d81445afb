import { planAround } from './method-plan';
import { DEFAULT_DATA_SOURCE, HiddenProvider } from './tokens';
import type { TransactionOptions } from './transaction-options';
import { TransactionRunner } from './transaction-runner';

export interface TransactionalOptions extends TransactionOptions {
  /** Name of the data source. Default `default`. */
  readonly dataSource?: string;
}

const runners = new HiddenProvider(TransactionRunner);

/**
 * Runs the method in a database transaction: it commits when the method's promise resolves and rolls back when it
 * rejects. What repositories, entity managers, query builders and `dataSource.query()` of that data source do
 * inside is part of it, as are the events emitted.
 *
 * Works on every class that Nest instantiates, in any order with other decorators. The method must be asynchronous.
 *
 * @throws TransactionDoomedError when the database has undone the transaction although the method succeeded
 * @throws OutboxNotInjectedError when Nest did not make the instance
 */
export function Transactional(options: TransactionalOptions = {}) {
  const { dataSource = DEFAULT_DATA_SOURCE } = options;
  return <M extends (...args: never[]) => Promise<unknown>>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<M>,
  ): void => {
    runners.declare(target, dataSource);
    const plan = planAround(target, key, descriptor, async (instance, proceed) =>
      runners.of(instance, dataSource).run(options, async () => proceed()),
    );
    plan.transaction = { dataSource, propagation: options.propagation ?? 'REQUIRED' };
  };
}
