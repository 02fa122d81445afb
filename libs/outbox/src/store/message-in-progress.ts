import { MessageInProgressError } from '../errors';
import { driverCode } from './driver-code';

export function messageInProgress(consumer: string, messageId: string, cause: unknown): MessageInProgressError {
  return new MessageInProgressError(`${consumer}: another copy of message ${messageId} is being handled.`, { cause });
}

/**
 * Rolled back by the database in favour of another copy, which may be rolled back itself; or overtaken by one between
 * the look at a batch and its insert.
 */
const GAVE_WAY: ReadonlySet<unknown> = new Set(['ER_LOCK_DEADLOCK', 'ER_DUP_ENTRY', '40P01', '40001']);

/** Whether trying again at once makes sense: the lock was not waited for in vain, there were several who waited. */
export function gaveWay(error: unknown): boolean {
  return error instanceof MessageInProgressError && GAVE_WAY.has(driverCode(error.cause));
}
