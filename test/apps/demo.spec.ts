import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Checklist } from '../../apps/demo/src/checklist.js';
import {
  differingRepeats,
  firstAppearances,
  stepsOutOfOrder,
  type TopicRecord,
} from '../../apps/demo/src/kafka/topic-record.js';
import { Narrator } from '../../apps/demo/src/narrator.js';
import { paintFor } from '../../apps/demo/src/paint.js';

const MAIN = fileURLToPath(new URL('../../dist/apps/demo/src/main.js', import.meta.url));
const PLAIN = paintFor({ isTTY: false }, {});

describe('the demo', () => {
  it('tells its story, finds all claims true and exits with 0', async () => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [MAIN]);
    expect(stdout).toMatch(/All \d+ claims hold\./);
    expect(stdout).not.toMatch(/NO$/m);
    // Neither the framework's log nor colours where no terminal is.
    expect(stdout).not.toContain('[Nest]');
    expect(stdout).not.toContain('\u001b');
    expect(stderr).toBe('');
  });

  it('finds out when a figure is wrong', () => {
    const checklist = new Checklist();
    checklist.check('reservations', 1, 1);
    expect(checklist.allHold).toBe(true);
    checklist.check('reservations after the repeat', 1, 2);
    expect(checklist.allHold).toBe(false);

    const lines: string[] = [];
    new Narrator((text) => lines.push(text), PLAIN).conclude(checklist, 1_000);
    expect(lines.join('')).toMatch(/^reservations after the repeat +1 +2 +NO$/m);
    expect(lines.join('')).toContain('1 of 2 claims do not hold. 1.0 s');
  });

  it('does not take a story without figures for a success', () => {
    expect(new Checklist().allHold).toBe(false);
  });

  it('has colours on a terminal, unless they are not wanted', () => {
    expect(paintFor({ isTTY: true }, {}).green('yes')).toBe('\u001b[32myes\u001b[0m');
    expect(paintFor({ isTTY: true }, { NO_COLOR: '1' }).green('yes')).toBe('yes');
  });
});

describe('the Kafka demo', () => {
  const record = (id: string, available: number, quantity = 1): TopicRecord => ({
    id,
    key: 'tea',
    value: JSON.stringify({ available, quantity }),
    headers: '{}',
  });

  it('counts a repeat once, and at its first place', () => {
    const [a, b] = [record('a', 9), record('b', 8)];
    expect(firstAppearances([a, b, a, b, a])).toEqual([a, b]);
    expect(differingRepeats([a, b, a])).toBe(0);
    expect(differingRepeats([a, b, { ...a, headers: '{"event_type":"other"}' }])).toBe(1);
  });

  it('finds stock events that are swapped, missing or invented', () => {
    const steps = [record('a', 9), record('b', 7, 2), record('c', 6)];
    const [a, b, c] = steps as [TopicRecord, TopicRecord, TopicRecord];
    expect(stepsOutOfOrder(steps, { tea: 10 })).toBe(0);
    expect(stepsOutOfOrder([a, c, b], { tea: 10 })).toBeGreaterThan(0);
    expect(stepsOutOfOrder([a, c], { tea: 10 })).toBe(1);
    expect(stepsOutOfOrder([...steps, { ...a, key: 'unicorn' }], { tea: 10 })).toBe(1);
  });
});
