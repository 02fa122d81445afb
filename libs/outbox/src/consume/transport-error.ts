import { HandlerFailedError } from '../errors';

/** Names at which kafkajs stops a consumer for good, as it takes them for mistakes in itself. */
const FATAL_NAMES: ReadonlySet<unknown> = new Set(['TypeError', 'RangeError', 'ReferenceError', 'SyntaxError']);

/** The error to fail a delivery with: the handler's own, unless the Kafka client would mistake it for one of its own. */
export function transportError(error: unknown, consumer: string): unknown {
  if (typeof error !== 'object' || error === null) return error;
  const { name, retriable, type } = error as { name?: unknown; retriable?: unknown; type?: unknown };
  const isMistakable =
    FATAL_NAMES.has(name) || (typeof name === 'string' && name.startsWith('KafkaJS')) || retriable !== undefined || type;
  if (!isMistakable) return error;
  const reason = error instanceof Error ? error.message : String(name);
  return new HandlerFailedError(`${consumer}: ${reason}`, { cause: error });
}
