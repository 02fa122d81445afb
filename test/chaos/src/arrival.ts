import { setTimeout as sleep } from 'node:timers/promises';
import type { ChaosBroker } from './broker.js';
import type { Ground } from './faults.js';

/** How long nothing may move before the rest counts as lost. */
const PATIENCE_MS = 45_000;

/** Waits until every committed event is published or parked and has had its effect, or until nothing moves any more. */
export async function settle({ database, broker }: Ground, say: (line: string) => void): Promise<void> {
  let last = '';
  let moved = Date.now();
  for (;;) {
    const committed = await database.committed();
    const parked = new Set(await database.parked());
    const published = new Set(broker.records().map(({ eventId }) => eventId));
    const effects = await database.effects();
    const missing = committed.filter(({ eventId }) => !published.has(eventId) && !parked.has(eventId)).length;
    const state = `${committed.length} committed, ${missing} on their way, ${effects.length} effects`;
    if (state !== last) {
      say(state);
      last = state;
      moved = Date.now();
    }
    const acted = new Set(effects.map(({ eventId }) => eventId));
    if (missing === 0 && [...published].every((id) => id === null || acted.has(id))) return;
    if (Date.now() - moved > PATIENCE_MS) {
      say('nothing moves any more');
      return;
    }
    await sleep(1000);
  }
}

/** The relays have ended: what is on the topics now is all. */
export async function readAll(broker: ChaosBroker): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (broker.records().length < (await broker.count())) {
    if (Date.now() > deadline) throw new Error('the topics could not be read to their end');
    await sleep(200);
  }
}
