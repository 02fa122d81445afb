import { HandlerFailedError } from '../errors';
import { reasonOf } from './reason-of';

/** Names at which kafkajs stops a consumer for good, as it takes them for mistakes in itself. */
const FATAL_NAMES: ReadonlySet<unknown> = new Set(['TypeError', 'RangeError', 'ReferenceError', 'SyntaxError']);

/** The error to fail a delivery with: the handler's own, unless the Kafka client would mistake it for one of its own. */
export function transportError(error: unknown, consumer: string): unknown {
  // The client looks for its stack.
  if (error === undefined || error === null) return new HandlerFailedError(`${consumer}: ${String(error)} was thrown`);
  if (typeof error !== 'object') return error;
  const { name, retriable, type } = error as { name?: unknown; retriable?: unknown; type?: unknown };
  const isMistakable =
    FATAL_NAMES.has(name) || (typeof name === 'string' && name.startsWith('KafkaJS')) || retriable !== undefined || type;
  if (!isMistakable) return error;
  return new HandlerFailedError(`${consumer}: ${reasonOf(error)}`, { cause: error });
}
