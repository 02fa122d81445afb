import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Deadline } from './deadline';

describe('Deadline', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('lets through what is in time', async () => {
    const deadline = new Deadline(1_000);
    expect(await deadline.race(Promise.resolve('done'))).toEqual({ value: 'done' });
    expect(deadline.expired).toBe(false);
    expect(deadline.remaining).toBe(1_000);
    deadline.dispose();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends a wait when the time is over, and every later one at once', async () => {
    const deadline = new Deadline(1_000);
    const waiting = deadline.race(new Promise(() => {}));
    vi.advanceTimersByTime(1_000);
    expect(await waiting).toBeNull();
    expect(await deadline.race(new Promise(() => {}))).toBeNull();
    expect(deadline.expired).toBe(true);
    expect(deadline.remaining).toBe(0);
  });

  it('can be cut short', async () => {
    const deadline = new Deadline(1_000);
    deadline.cut();
    expect(await deadline.race(new Promise(() => {}))).toBeNull();
    expect(deadline.expired).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });
});
