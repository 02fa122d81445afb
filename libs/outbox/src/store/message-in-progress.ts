import { MessageInProgressError } from '../errors';

export function messageInProgress(consumer: string, messageId: string, cause: unknown): MessageInProgressError {
  return new MessageInProgressError(`${consumer}: another copy of message ${messageId} is being handled.`, { cause });
}

/** The code that the driver gave the error. */
export function driverCode(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}
