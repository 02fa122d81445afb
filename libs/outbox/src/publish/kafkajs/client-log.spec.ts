import { logLevel } from 'kafkajs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClientLog } from './client-log';

function newLogger() {
  return { warn: vi.fn<(line: string) => void>(), debug: vi.fn<(line: string) => void>() };
}

function entry(message: string, level = logLevel.ERROR, extra: object = {}) {
  return { namespace: 'Connection', label: 'ERROR', level, log: { timestamp: '', message, ...extra } };
}

describe('ClientLog', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('writes a line once a minute, as a warning', () => {
    const logger = newLogger();
    const log = new ClientLog(logger).creator(() => false)(logLevel.WARN);
    const say = () => log(entry('Connection error', logLevel.ERROR, { broker: 'a:1' }));
    for (let n = 0; n < 100; n += 1) say();
    expect(logger.warn.mock.calls).toEqual([['Connection error (a:1)']]);
    log(entry('Connection error', logLevel.ERROR, { broker: 'b:1' }));
    expect(logger.warn).toHaveBeenCalledTimes(2);
    vi.advanceTimersByTime(60_001);
    say();
    expect(logger.warn).toHaveBeenCalledTimes(3);
  });

  it('says what went wrong in a response, and leaves out what concerns nobody', () => {
    const logger = newLogger();
    const log = new ClientLog(logger).creator(() => false)(logLevel.WARN);
    log(entry('Response Produce', logLevel.ERROR, { error: 'too large' }));
    log(entry('Limiting retries for the idempotent producer may invalidate EoS guarantees', logLevel.WARN));
    log(entry('details', logLevel.INFO));
    expect(logger.warn.mock.calls).toEqual([['Response Produce: too large']]);
    expect(logger.debug).toHaveBeenCalledTimes(1);
  });

  it('is still when it is muted', () => {
    const logger = newLogger();
    new ClientLog(logger).creator(() => true)(logLevel.WARN)(entry('Connection error'));
    expect(logger.warn).not.toHaveBeenCalled();
  });
});
