import type { DataSource, QueryRunner } from 'typeorm';
import type { OutboxMessage } from '../event/message';
import type { Branch } from './branch';
import type { IsolationLevel } from './transaction-options';
import type { TransactionScope } from './transaction-scope';

/** Writes the collected messages with the given query runner, inside its transaction. */
export type Flush = (queryRunner: QueryRunner, messages: readonly OutboxMessage[]) => Promise<void>;

export interface ScopeOptions {
  readonly databaseType: DataSource['options']['type'];
  readonly isolation: IsolationLevel | undefined;
  /** Whether the query runner serves this transaction alone: then it stays watched when the transaction has ended. */
  readonly isOwned: boolean;
  /** Whether the connection is still in a transaction, as far as its driver can tell. */
  readonly isInTransaction: () => boolean;
  readonly flush: Flush;
  /** The branch of this transaction that calls, if it is one: code with an explicit manager is none. */
  readonly caller: () => Branch | undefined;
  /** Called once, as soon as the outcome is known. */
  readonly onEnd: (scope: TransactionScope) => void;
}
