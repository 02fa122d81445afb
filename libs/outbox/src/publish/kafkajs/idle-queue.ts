const FIXED = Symbol.for('nestjs-transactional-outbox.kafkajs-idle-queue');

interface RequestQueue {
  readonly pending: readonly unknown[];
  scheduleCheckPendingRequests(): void;
  [FIXED]?: true;
}

/**
 * Stops a timer of kafkajs 2.2. Once a connection has had its first answer, its queue of requests looks every
 * millisecond whether something waits in it, for ever: over 1 % of a processor for each connection, and a warning on
 * Node 24, since the delay that it computes is negative. It is enough to look while something does wait.
 *
 * This concerns all clients of this copy of kafkajs, to their good. A kafkajs that looks different is left alone.
 */
export function quietIdleQueues(): void {
  const prototype = queuePrototype();
  if (typeof prototype?.scheduleCheckPendingRequests !== 'function' || prototype[FIXED] === true) return;
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype[FIXED] = true;
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue): void {
    if (!Array.isArray(this.pending) || this.pending.length > 0) schedule.call(this);
  };
}

function queuePrototype(): RequestQueue | undefined {
  try {
    // Not part of what kafkajs exports, so nothing depends on finding it.
    const found = require('kafkajs/src/network/requestQueue') as { readonly prototype?: RequestQueue };
    return found.prototype;
  } catch {
    return undefined;
  }
}
