import { describe, expect, it } from 'vitest';
import { explore } from './explore.js';
import { outboxModel } from './outbox-model.js';

describe('the model of the relay', () => {
  it('keeps every promise in every state that two relays, two writers and their faults can reach', () => {
    const { states, counterExample } = explore(outboxModel());
    expect(counterExample).toBeUndefined();
    expect(states).toBeGreaterThan(10_000);
  });

  it.each([
    ['the lock of the lane', 'laneLock', /settled twice|P3|old copy/],
    ['settling on the connection that holds the lane', 'fencing', /settled twice|P1|P3/],
    ['holding back what follows a refused message', 'keyHold', /P3/],
    ['the lock that keeps commit order', 'orderLock', /P3/],
  ] as const)('breaks one without %s', (_, safeguard, promise) => {
    const { counterExample } = explore(outboxModel({ [safeguard]: false }));
    expect(counterExample?.promise).toMatch(promise);
    expect(counterExample?.steps.length).toBeGreaterThan(3);
  });

  // What docs/guarantees.md says of P3: the exception is not there for nothing.
  it('lets a frozen relay send a message behind newer ones when it was parked meanwhile', () => {
    const { counterExample } = explore(outboxModel({}, { strict: true }));
    expect(counterExample?.promise).toMatch(/P3/);
    expect(counterExample?.steps.at(-1)).toMatch(/though its lane is lost/);
  });
});
