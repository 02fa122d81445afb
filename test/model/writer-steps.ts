import type { Step } from './explore.js';
import type { Safeguards, State, Writer } from './state.js';

/** Begin (and lock the bucket), insert, commit. */
export function writerSteps(state: State, index: number, { orderLock }: Safeguards): Step<State>[] {
  const writer = state.writers[index];
  if (!writer) return [];
  const name = `writer ${index + 1}`;
  const withWriter = (changed: Writer): State => ({ ...state, writers: state.writers.with(index, changed) });

  if (writer.inserted !== null) {
    const id = writer.inserted;
    return [
      {
        name: `${name} commits message ${id}`,
        state: {
          ...withWriter({ ...writer, inserted: null }),
          bucket: state.bucket === index ? null : state.bucket,
          committed: [...state.committed, id],
          pending: [...state.pending, id].sort((a, b) => a - b),
        },
      },
    ];
  }
  if (writer.left === 0 || (orderLock && state.bucket !== null)) return [];
  return [
    {
      name: `${name} inserts message ${state.nextId}`,
      state: {
        ...withWriter({ left: writer.left - 1, inserted: state.nextId }),
        bucket: orderLock ? index : null,
        nextId: state.nextId + 1,
      },
    },
  ];
}
