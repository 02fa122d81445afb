import type { Step } from './explore.js';
import { settle } from './settle.js';
import { BATCH, type Relay, type Safeguards, type State } from './state.js';

/** Claim, publish record by record, settle; and what may happen to a relay between. */
export function relaySteps(state: State, index: number, safeguards: Safeguards): Step<State>[] {
  const relay = state.relays[index] ?? null;
  const name = `relay ${index + 1}`;
  if (relay === null) return claim(state, index, safeguards).map((next) => ({ name: `${name} claims`, state: next }));
  return [...publish(state, index, relay, safeguards), ...finish(state, index, relay, safeguards), ...misfortune(state, index, relay)].map(
    (step) => ({ ...step, name: `${name} ${step.name}` }),
  );
}

/** Heads are read after the lane is locked; followers of a held key leave the queue with the claim's commit. */
function claim(state: State, index: number, { laneLock, keyHold }: Safeguards): State[] {
  if (laneLock && state.lane !== null) return [];
  const { hold, pending } = state;
  const due = hold?.due ?? false;
  if (!due && pending.length === 0) return [];
  const holds = keyHold && hold !== null;
  const batch = (holds ? (due ? hold.ids : []) : pending).slice(0, BATCH);
  const followers = holds ? pending : [];
  if (batch.length + followers.length === 0) return [];
  const relay: Relay = { batch, held: holds, followers, answered: 0, sent: [], refused: null, connected: true };
  return [{ ...withRelay(state, index, relay), lane: laneLock ? index : null }];
}

/** The broker appends the next record, or refuses it; what follows a refused one is not sent. */
function publish(state: State, index: number, relay: NonNullable<Relay>, { keyHold }: Safeguards): Step<State>[] {
  const id = relay.batch[relay.answered];
  if (id === undefined || (keyHold && relay.refused !== null)) return [];
  const steps: Step<State>[] = [
    {
      name: `publishes message ${id}${relay.connected ? '' : ', though its lane is lost'}`,
      state: {
        ...withRelay(state, index, { ...relay, answered: relay.answered + 1, sent: [...relay.sent, id] }),
        topic: [...state.topic, id],
        zombie: state.zombie || !relay.connected,
      },
    },
  ];
  if (state.left.refusals > 0 && relay.refused === null) {
    steps.push({
      name: `is refused message ${id}`,
      state: {
        ...withRelay(state, index, { ...relay, answered: relay.answered + 1, refused: id }),
        left: { ...state.left, refusals: state.left.refusals - 1 },
      },
    });
  }
  return steps;
}

function finish(state: State, index: number, relay: NonNullable<Relay>, safeguards: Safeguards): Step<State>[] {
  const stopped = safeguards.keyHold && relay.refused !== null;
  if (relay.answered < relay.batch.length && !stopped) return [];
  const idle = withRelay(state, index, null);
  if (!relay.connected && safeguards.fencing) return [{ name: 'cannot settle', state: idle }];
  const lane = state.lane === index ? null : state.lane;
  return [{ name: 'settles', state: settle({ ...idle, lane }, relay, safeguards) }];
}

function misfortune(state: State, index: number, relay: NonNullable<Relay>): Step<State>[] {
  const lane = state.lane === index ? null : state.lane;
  const steps: Step<State>[] = [];
  if (state.left.crashes > 0) {
    const left = { ...state.left, crashes: state.left.crashes - 1 };
    steps.push({ name: 'crashes', state: { ...withRelay(state, index, null), lane, left } });
  }
  if (state.left.cuts > 0 && relay.connected) {
    const left = { ...state.left, cuts: state.left.cuts - 1 };
    steps.push({ name: 'loses its session', state: { ...withRelay(state, index, { ...relay, connected: false }), lane, left } });
  }
  return steps;
}

/** The time of a hold's next attempt comes. */
export function timeSteps(state: State): Step<State>[] {
  if (!state.hold || state.hold.due) return [];
  return [{ name: 'the held key is due', state: { ...state, hold: { ...state.hold, due: true } } }];
}

function withRelay(state: State, index: number, relay: Relay): State {
  return { ...state, relays: state.relays.with(index, relay) };
}
