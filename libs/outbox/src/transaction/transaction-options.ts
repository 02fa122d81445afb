/** How a transactional method relates to a transaction that is already open. The names are Spring's. */
export type Propagation =
  /** Joins the open transaction, or begins one. */
  | 'REQUIRED'
  /** Begins one of its own on another connection; the open one waits. */
  | 'REQUIRES_NEW'
  /** A savepoint in the open transaction, or begins one. */
  | 'NESTED'
  /** Joins the open transaction; without one it is an error. */
  | 'MANDATORY'
  /** Joins the open transaction, or runs without. */
  | 'SUPPORTS'
  /** Runs outside the open transaction. */
  | 'NOT_SUPPORTED'
  /** Runs without; an open transaction is an error. */
  | 'NEVER';

export type IsolationLevel = 'READ UNCOMMITTED' | 'READ COMMITTED' | 'REPEATABLE READ' | 'SERIALIZABLE';

export interface TransactionOptions {
  /** Default `REQUIRED`. */
  readonly propagation?: Propagation;
  /** Default: the data source's. Joining a transaction that has another one is an error. */
  readonly isolation?: IsolationLevel;
  /**
   * How often to run the whole work again after a deadlock, a lock wait timeout or a serialisation failure, with a
   * short, growing pause. Default 0. It has no effect where the work joins an open transaction: only that can be run
   * again.
   */
  readonly retries?: number;
}
