import { describe, expect, it } from 'vitest';
import { FAULT_KINDS, planFaults } from './src/plan.js';

describe('the plan of a run', () => {
  it('is decided by its seed', () => {
    expect(planFaults(7, 120)).toEqual(planFaults(7, 120));
    expect(planFaults(7, 120)).not.toEqual(planFaults(8, 120));
  });

  it('has about one fault for each second, of every kind', () => {
    const faults = planFaults(3, 600);
    expect(faults.length).toBeGreaterThan(500);
    expect(faults.length).toBeLessThan(700);
    expect(new Set(faults.map(({ kind }) => kind))).toEqual(new Set(FAULT_KINDS));
    expect(faults.map(({ at }) => at)).toEqual(faults.map(({ at }) => at).sort((a, b) => a - b));
  });

  it('keeps to the kinds that are asked for', () => {
    expect(new Set(planFaults(1, 60, ['poison', 'relay-kill']).map(({ kind }) => kind))).toEqual(
      new Set(['poison', 'relay-kill']),
    );
  });
});
