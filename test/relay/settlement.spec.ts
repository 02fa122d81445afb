import { describe, expect, it } from 'vitest';
import { backoff } from '../../libs/outbox/src/relay/backoff';
import { checkRelayOptions, DEFAULT_RELAY_OPTIONS, type RelayOptions } from '../../libs/outbox/src/relay/relay-options';
import { type SettlementPolicy, toSettlement } from '../../libs/outbox/src/relay/settlement';
import type { ClaimedMessage } from '../../libs/outbox/src/store/claim';
import { ids, message } from '../store/fixture';
import { acknowledged, refused, topicMissing, unanswered } from './scripted-publisher';

const POLICY: SettlementPolicy = { maxAttempts: 5, retryDelay: 1000, maxRetryDelay: 30_000, onExhausted: 'continue' };

function claimed(change: Partial<ClaimedMessage> = {}): ClaimedMessage {
  return { ...message(), id: '1', lane: 0, createdAt: 0, attempts: 0, source: 'pending', bytes: 2, defect: null, ...change };
}

describe('what becomes of published messages', () => {
  it('counts only the first refusal of a key, whatever the publisher says of the rest', () => {
    const batch = [claimed(), claimed(), claimed({ key: 'other' })];
    const settlement = toSettlement(batch, [refused, refused, acknowledged], POLICY);
    expect(ids(settlement.retried.map((r) => r.message))).toEqual(ids(batch.slice(0, 1)));
    expect(ids(settlement.sent)).toEqual(ids(batch.slice(2)));
  });

  it('counts nothing behind an unanswered message of the key', () => {
    const nothing = { sent: [], retried: [], parked: [], waiting: [] };
    expect(toSettlement([claimed(), claimed()], [unanswered, refused], POLICY)).toEqual(nothing);
    expect(toSettlement([claimed(), claimed()], [unanswered, acknowledged], POLICY)).toEqual(nothing);
  });

  it('parks at the last attempt, and blocks the key where the option cannot say', () => {
    const last = claimed({ attempts: 4 });
    const throwing = { ...POLICY, onExhausted: () => { throw new Error('a bug'); } };
    expect(toSettlement([last], [refused], POLICY).parked).toMatchObject([{ blocks: false }]);
    expect(toSettlement([last], [refused], throwing).parked).toMatchObject([{ blocks: true }]);
    expect(toSettlement([claimed({ attempts: 3 })], [refused], POLICY).parked).toEqual([]);
  });

  it('lets messages of a missing topic wait in their lane, those behind them too, and others not', () => {
    const batch = [claimed(), claimed(), claimed({ lane: 1, key: 'b' }), claimed({ topic: 'there', key: 'c' })];
    const settlement = toSettlement(batch, [topicMissing, unanswered, unanswered, acknowledged], POLICY);
    expect(ids(settlement.waiting.map((w) => w.message))).toEqual(ids(batch.slice(0, 2)));
    expect(ids(settlement.sent)).toEqual(ids(batch.slice(3)));
  });

  it('treats a message without an outcome as not tried', () => {
    expect(toSettlement([claimed()], [], POLICY)).toEqual({ sent: [], retried: [], parked: [], waiting: [] });
  });
});

describe('the pause before the next attempt', () => {
  it('doubles, is capped, and is spread by a quarter', () => {
    const all = (failures: number) => Array.from({ length: 200 }, () => backoff(failures, POLICY));
    for (const [failures, most] of [[1, 1000], [2, 2000], [3, 4000], [5, 16_000], [6, 30_000], [60, 30_000]] as const) {
      expect(Math.max(...all(failures))).toBeLessThanOrEqual(most);
      expect(Math.min(...all(failures))).toBeGreaterThanOrEqual(most * 0.75);
      expect(new Set(all(failures)).size).toBeGreaterThan(10);
    }
  });
});

describe('options of the relay', () => {
  const check = (options: object) => () => checkRelayOptions({ ...DEFAULT_RELAY_OPTIONS, ...(options as RelayOptions) });

  it('are sound by default', () => {
    expect(check({})).not.toThrow();
  });

  it.each([
    [{ sessionTimeout: 4999 }, /sessionTimeout must be at least publishTimeout \+ 2000 ms \(5000\)/],
    [{ publishTimeout: 9000 }, /sessionTimeout/],
    [{ batchSize: 0 }, /batchSize/],
    [{ pollInterval: 1.5 }, /pollInterval/],
    [{ settle: 'keep' }, /settle must be "mark" or "delete"/],
    [{ onExhausted: 'stop' }, /onExhausted/],
    [{ enabled: 'yes' }, /enabled/],
  ])('are refused at boot when they are not: %j', (options, reason) => {
    expect(check(options)).toThrow(reason);
  });
});
