import type { DataSource } from 'typeorm';

/**
 * What an error of a statement has done to its transaction:
 *
 * - `none`: only the statement failed; the transaction is whole.
 * - `since-savepoint`: the transaction is not what the code thinks it is, until it goes back to a savepoint set
 *   before the error.
 * - `transaction`: the database has ended the transaction; a further statement would commit by itself.
 */
export type FailureEffect = 'none' | 'since-savepoint' | 'transaction';

/** MySQL: the error says that the server rolled back the whole transaction. */
const MYSQL_ROLLED_BACK = new Set(['ER_LOCK_DEADLOCK', 'ER_LOCK_TABLE_FULL', 'ER_XA_RBDEADLOCK', 'ER_CHECKREAD']);
/** MySQL: the statement was undone, and with `innodb_rollback_on_timeout` the transaction too. */
const MYSQL_HALF_UNDONE = new Set(['ER_LOCK_WAIT_TIMEOUT', 'ER_QUERY_INTERRUPTED', 'ER_QUERY_TIMEOUT']);
const SQLITE_MAY_ROLL_BACK = /^SQLITE_(FULL|IOERR|NOMEM|BUSY|INTERRUPT|CORRUPT)/;

interface DriverError {
  readonly code?: unknown;
  readonly fatal?: unknown;
}

export function failureEffect(type: DataSource['options']['type'], error: unknown): FailureEffect {
  const { code, fatal } = driverError(error);
  if (fatal === true) return 'transaction';
  switch (type) {
    case 'postgres':
      // Every error aborts a PostgreSQL transaction; an error without SQLSTATE comes from a broken connection.
      return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? postgresEffect(code) : 'transaction';
    case 'mysql':
    case 'mariadb':
      if (typeof code !== 'string') return 'none';
      if (MYSQL_ROLLED_BACK.has(code)) return 'transaction';
      return MYSQL_HALF_UNDONE.has(code) ? 'since-savepoint' : 'none';
    default:
      return typeof code === 'string' && SQLITE_MAY_ROLL_BACK.test(code) ? 'transaction' : 'none';
  }
}

/** Class 57P is an administrator's shutdown, class 08 a lost connection: the session is gone. */
function postgresEffect(code: string): FailureEffect {
  return code.startsWith('57P') || code.startsWith('08') ? 'transaction' : 'since-savepoint';
}

/** MySQL's and MariaDB's ER_CHECKREAD is a snapshot that another transaction has changed. */
const TRANSIENT = new Set([
  'ER_LOCK_DEADLOCK',
  'ER_LOCK_WAIT_TIMEOUT',
  'ER_CHECKREAD',
  '40001',
  '40P01',
  '55P03',
  'SQLITE_BUSY',
]);

/** Whether the error, or what caused it, is a conflict with another transaction, so that a second run may succeed. */
export function isConflict(error: unknown): boolean {
  const { code } = driverError(error);
  if (typeof code === 'string' && TRANSIENT.has(code)) return true;
  return error instanceof Error && error.cause !== undefined && isConflict(error.cause);
}

function driverError(error: unknown): DriverError {
  if (typeof error !== 'object' || error === null) return {};
  if ('driverError' in error && typeof error.driverError === 'object' && error.driverError !== null) {
    return error.driverError;
  }
  return error;
}
