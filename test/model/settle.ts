import { MAX_ATTEMPTS, type Relay, type Safeguards, type State } from './state.js';

/** One transaction: removes what was sent, parks or holds what was refused, moves the followers. */
export function settle(state: State, relay: NonNullable<Relay>, { keyHold }: Safeguards): State {
  const { refused, sent, held } = relay;
  const refusals = refused === null ? state.refusals : { ...state.refusals, [refused]: (state.refusals[refused] ?? 0) + 1 };
  const gone = refused !== null && (refusals[refused] ?? 0) >= MAX_ATTEMPTS;
  const done = gone ? [...sent, refused] : sent;
  const waits = refused !== null && !gone;
  const parked = gone ? [...state.parked, refused] : state.parked;

  if (!keyHold) {
    return { ...remove(state, done, 'pending'), refusals, parked };
  }
  if (!held) {
    const left = remove(state, waits ? [...done, refused] : done, 'pending');
    const hold = waits ? { ids: inOrder([...(left.hold?.ids ?? []), refused]), due: false } : left.hold;
    return { ...left, refusals, parked, hold };
  }
  const moved = remove(state, relay.followers, 'pending');
  const joined = { ...moved, hold: { ids: inOrder([...(moved.hold?.ids ?? []), ...relay.followers]), due: moved.hold?.due ?? false } };
  const left = remove(joined, done, 'hold');
  const ids = left.hold?.ids ?? [];
  // The next of the key is due at once, unless it was refused in this very batch.
  const due = relay.batch.length > 0 ? !waits : (left.hold?.due ?? false);
  return { ...left, refusals, parked, hold: ids.length === 0 ? null : { ids, due } };
}

function remove(state: State, ids: readonly number[], from: 'pending' | 'hold'): State {
  const there = from === 'pending' ? state.pending : (state.hold?.ids ?? []);
  const settledTwice = state.settledTwice || ids.some((id) => !there.includes(id));
  const rest = there.filter((id) => !ids.includes(id));
  if (from === 'pending') return { ...state, pending: rest, settledTwice };
  return { ...state, hold: { ids: rest, due: state.hold?.due ?? false }, settledTwice };
}

function inOrder(ids: readonly number[]): number[] {
  return [...new Set(ids)].sort((a, b) => a - b);
}
