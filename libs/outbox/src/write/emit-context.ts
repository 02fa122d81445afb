import type * as OpenTelemetry from '@opentelemetry/api';
import { currentMessageContext, type MessageContext } from '../event/message-context';

/** Says what the situation adds to each message: tenant, correlation, headers. */
export type ContextProvider = () => MessageContext;

/**
 * What messages emitted now take over: first from the message that is being handled, then from the active span, then
 * from the app's own provider, each over the one before.
 */
export class EmitContext {
  private readonly openTelemetry = loadOpenTelemetry();

  constructor(private readonly provider: ContextProvider | undefined) {}

  current(): MessageContext {
    const handled = currentMessageContext();
    const traced = this.traced();
    const own = this.provider?.() ?? {};
    return { ...handled, ...traced, ...own, headers: { ...handled.headers, ...traced.headers, ...own.headers } };
  }

  private traced(): MessageContext {
    if (!this.openTelemetry) return {};
    const { context, propagation } = this.openTelemetry;
    const carrier: Record<string, string> = {};
    propagation.inject(context.active(), carrier);
    const { traceparent, tracestate } = carrier;
    return {
      ...(traceparent === undefined ? {} : { traceparent }),
      ...(tracestate === undefined ? {} : { headers: { tracestate } }),
    };
  }
}

/** The API is an optional peer: without it messages carry no trace. */
function loadOpenTelemetry(): typeof OpenTelemetry | undefined {
  try {
    return require('@opentelemetry/api') as typeof OpenTelemetry;
  } catch {
    return undefined;
  }
}
