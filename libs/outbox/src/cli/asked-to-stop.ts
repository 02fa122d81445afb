import { constants } from 'node:os';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Milliseconds that what a client has left open may keep a process that has done its work. */
const LINGER = 1000;

export interface StopRequest {
  /** Resolves with the first signal. */
  readonly asked: Promise<NodeJS.Signals>;
  /** Signals have their ordinary effect again. */
  ignore(): void;
}

/** The first signal asks a process to stop; a second one, of either kind, ends it at once. */
export function askedToStop(): StopRequest {
  let answer: (signal: NodeJS.Signals) => void = () => undefined;
  let isAsked = false;
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    answer = resolve;
  });
  const handler = (signal: NodeJS.Signals): void => {
    // Not by the signal itself: it has no effect on the first process of a container.
    if (isAsked) process.exit(128 + constants.signals[signal]);
    isAsked = true;
    answer(signal);
  };
  for (const signal of SIGNALS) process.on(signal, handler);
  return {
    asked,
    ignore() {
      for (const signal of SIGNALS) process.off(signal, handler);
      if (isAsked) setTimeout(() => process.exit(), LINGER).unref();
    },
  };
}
