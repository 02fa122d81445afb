import type { MessageContext } from '../event/message-context';
import { MAX_NAME_LENGTH } from '../event/to-message';

/** What messages emitted while this one is handled take over from it. */
export function incomingContext(messageId: string, headers: Readonly<Record<string, unknown>>): MessageContext {
  const tenantId = contextText(headers['tenant_id']);
  const traceparent = contextText(headers['traceparent']);
  const tracestate = contextText(headers['tracestate']);
  return {
    correlationId: contextText(headers['correlation_id']) ?? messageId,
    causationId: messageId,
    ...(tenantId === undefined ? {} : { tenantId }),
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(tracestate === undefined ? {} : { headers: { tracestate } }),
  };
}

/** A header that the columns of the log can hold; what others send beyond that must not stop a handler. */
export function contextText(value: unknown): string | undefined {
  const fits = typeof value === 'string' && value.length > 0 && value.length <= MAX_NAME_LENGTH;
  return fits && !value.includes('\u0000') && value.isWellFormed() ? value : undefined;
}
