import { AsyncLocalStorage } from 'node:async_hooks';

/** What is not in an event itself but in the situation in which it is emitted. */
export interface MessageContext {
  readonly tenantId?: string;
  readonly traceparent?: string;
  readonly correlationId?: string;
  /** Id of the message or command that this one follows from. */
  readonly causationId?: string;
  /** Headers for every message emitted in it; an event's own headers win. */
  readonly headers?: Readonly<Record<string, string>>;
}

const storage = new AsyncLocalStorage<MessageContext>();

/** Runs work in a context that the messages it emits take over, such as that of the message it handles. */
export function withMessageContext<T>(context: MessageContext, work: () => T): T {
  return storage.run({ ...storage.getStore(), ...context }, work);
}

/** The context that the calling code is in. */
export function currentMessageContext(): MessageContext {
  return storage.getStore() ?? {};
}
