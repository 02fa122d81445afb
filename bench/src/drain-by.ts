import type { RelayProcess, Stages } from './relay-process.js';

/** Milliseconds from the first claim to the last settlement. Of several relays the stages are an average, the cores a sum. */
export interface Drained extends Stages {
  readonly milliseconds: number;
}

/** Has relays send so many messages between them; they go on relaying until they are stopped. */
export async function drainBy(relays: readonly RelayProcess[], messages: number): Promise<Drained> {
  let left = messages;
  let begun = Number.POSITIVE_INFINITY;
  let ended = 0;
  const stages = await Promise.all(
    relays.map((relay) =>
      relay.start((settled) => {
        if (left <= 0) return;
        left -= settled.messages;
        begun = Math.min(begun, settled.begun);
        ended = Math.max(ended, settled.at);
        if (left <= 0) for (const each of relays) each.count();
      }),
    ),
  );
  const average = (of: (stage: Stages) => number): number => sum(stages.map(of)) / stages.length;
  return {
    milliseconds: ended - begun,
    claimMs: average(({ claimMs }) => claimMs),
    publishMs: average(({ publishMs }) => publishMs),
    settleMs: average(({ settleMs }) => settleMs),
    cores: sum(stages.map(({ cores }) => cores)),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
