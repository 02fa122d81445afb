import type { Model } from './explore.js';
import { brokenPromise } from './promises.js';
import { relaySteps, timeSteps } from './relay-steps.js';
import { ALL_SAFEGUARDS, type Safeguards, START, type State } from './state.js';
import { writerSteps } from './writer-steps.js';

/** The design, or the design without one of its safeguards. */
export function outboxModel(without: Partial<Safeguards> = {}, { strict = false } = {}): Model<State> {
  const safeguards = { ...ALL_SAFEGUARDS, ...without };
  return {
    start: START,
    steps: (state) => [
      ...state.writers.flatMap((_, index) => writerSteps(state, index, safeguards)),
      ...state.relays.flatMap((_, index) => relaySteps(state, index, safeguards)),
      ...timeSteps(state),
    ],
    broken: (state, final) => brokenPromise(state, final, strict),
  };
}
