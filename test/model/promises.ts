import type { State } from './state.js';

/** The promise that a state breaks, if any. `strict`: without the exception that P3 has. */
export function brokenPromise(state: State, final: boolean, strict = false): string | undefined {
  return lost(state, final) ?? disorder(state, strict) ?? settledTwice(state) ?? (final ? lateCopy(state) : undefined);
}

/** P1: a committed message waits, is on the topic, or is parked; in the end it does not wait any more. */
function lost({ committed, pending, hold, parked, topic }: State, final: boolean): string | undefined {
  for (const id of committed) {
    if (topic.includes(id) || parked.includes(id)) continue;
    if (!pending.includes(id) && !hold?.ids.includes(id)) return `P1: message ${id} is nowhere`;
    if (final) return `P1: message ${id} waits for ever`;
  }
  return undefined;
}

/**
 * P3: first appearances follow the order of commits. The one exception is a message that was parked while a relay that
 * had lost its lane still meant to send it: when that relay goes on, the message stands behind its key's newer ones.
 */
function disorder({ committed, topic, parked, zombie }: State, strict: boolean): string | undefined {
  const judged = [...new Set(topic)].filter((id) => strict || !zombie || !parked.includes(id));
  const places = judged.map((id) => ({ id, place: committed.indexOf(id) }));
  for (const [index, { id, place }] of places.entries()) {
    const before = places[index - 1];
    if (place < 0) return `P2: message ${id} is published and not committed`;
    if (before && before.place > place) return `P3: message ${before.id} is in front of ${id}, which committed before it`;
    // A message that is not there yet must not be overtaken.
    const skipped = committed.slice(0, place).find((earlier) => !topic.includes(earlier) && !parked.includes(earlier));
    if (skipped !== undefined) return `P3: message ${id} has overtaken ${skipped}`;
  }
  return undefined;
}

function settledTwice(state: State): string | undefined {
  return state.settledTwice ? 'a message is settled twice' : undefined;
}

/**
 * Only a relay that went on without its lane leaves an older message as the last one. Where the newest is parked, having
 * been stored without an answer and then refused, nobody sends it again behind the others.
 */
function lateCopy({ topic, zombie, parked }: State): string | undefined {
  const records = topic.filter((id) => !parked.includes(id));
  const newest = [...new Set(records)].at(-1);
  return !zombie && records.at(-1) !== newest ? `an old copy of message ${records.at(-1)} is the last record` : undefined;
}
