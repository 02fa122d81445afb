import { explore } from './explore.js';
import { outboxModel } from './outbox-model.js';
import type { Safeguards } from './state.js';

const VARIANTS: readonly (keyof Safeguards | null)[] = [null, 'laneLock', 'fencing', 'keyHold', 'orderLock'];

/** Explores the design, which must hold, and the design without each of its safeguards, which must not. */
for (const missing of VARIANTS) {
  const { states, counterExample } = explore(outboxModel(missing === null ? {} : { [missing]: false }));
  console.log(missing === null ? 'The design:' : `Without ${missing}:`, `${states} states.`);
  if (counterExample) console.log(`  ${counterExample.promise}:\n${counterExample.steps.map((step) => `    ${step}`).join('\n')}`);
  else console.log('  No promise is broken in any of them.');
  if ((missing === null) === (counterExample !== undefined)) process.exitCode = 1;
}
