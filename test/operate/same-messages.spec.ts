import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ActResult, OutboxAdmin } from '../../libs/outbox/src/operate/outbox-admin';
import { until } from '../relay/fixture';
import { Random } from '../chaos/src/random';
import { acknowledged, refused, ScriptedPublishers } from '../relay/scripted-publisher';
import { DATABASES } from '../setup/databases';
import { ids, message, StoreFixture } from '../store/fixture';
import { BY, Operation } from './fixture';

const SEEDS = [1, 2, 3, 4];
const KEYS = ['a', 'b', 'c', 'd'];
const UNKNOWN = ['019b0000-0000-7000-8000-000000000000', '999999999', 'nonsense'];

/** Operators who want the same messages at the same moment: for the same, or for another act. */
class Dispute {
  readonly replayed = new Map<string, number>();
  readonly publishers = new ScriptedPublishers();
  readonly messages = KEYS.flatMap((key) => Array.from({ length: 10 }, () => message({ key })));
  private poison = 0.4;

  constructor(
    private readonly f: StoreFixture,
    private readonly o: Operation,
    private readonly next: () => number,
  ) {
    this.publishers.answer = (records) => records.map(() => (this.next() < this.poison ? refused : acknowledged));
  }

  async run(): Promise<void> {
    this.o.relays.start({ batchSize: 10, lanesPerClaim: 3, maxAttempts: 1, retryDelay: 5, onExhausted: () => (this.next() < 0.5 ? 'block' : 'continue') }, this.publishers, 10);
    await this.f.add(...this.messages);
    const admins = [this.o.admin(), this.o.admin(), this.o.admin()];
    for (let round = 0; round < 12; round++) {
      const given = [...new Set(Array.from({ length: 6 }, () => this.pick(ids(this.messages)))), this.pick(UNKNOWN)];
      const acts = admins.map(() => this.next());
      const same = this.next() < 0.4;
      await Promise.all(admins.map((admin, i) => this.act(admin, same ? (acts[0] ?? 0) : (acts[i] ?? 0), given)));
      await sleep(this.next() * 10);
    }
    this.poison = 0;
    const [admin] = admins;
    for (const key of KEYS) await admin?.release('orders', key, BY);
    await until(async () => (await this.f.count('pending')) + (await this.f.count('held')) === 0);
  }

  private async act(admin: OutboxAdmin, which: number, given: string[]): Promise<void> {
    if (which < 0.3) return this.check(given, await admin.requeue(given, BY));
    if (which < 0.5) return this.check(given, await admin.discard(given, BY));
    if (which < 0.85) {
      const result = await admin.replay(given, BY);
      const spared = new Set([...result.notFound, ...result.skipped.map(({ id }) => id)]);
      for (const id of given) if (!spared.has(id)) this.replayed.set(id, (this.replayed.get(id) ?? 0) + 1);
      return this.check(given, result);
    }
    // One of them is told that another cleans.
    await admin.purge(BY, { sent: 0, dead: which < 0.95 ? false : 0, batchSize: 5, pause: 0 });
  }

  /** Everything that was given is accounted for, and what was never there is said so. */
  private check(given: readonly string[], { done, notFound, skipped }: ActResult): void {
    expect(done + notFound.length + skipped.length).toBe(given.length);
    expect(notFound).toEqual(expect.arrayContaining(given.filter((id) => UNKNOWN.includes(id))));
    expect(skipped.map(({ state }) => state)).not.toContain('lost');
  }

  private pick(from: readonly string[]): string {
    return from[Math.floor(this.next() * from.length)] ?? '';
  }
}

describe.each(DATABASES)('three operators on the same messages on %s', (database) => {
  beforeAll(() => {
    vi.spyOn(Logger.prototype, 'log').mockReturnValue();
  });
  afterAll(() => vi.restoreAllMocks());

  it.each(SEEDS)('each get an answer that is true, and nothing is lost or sent twice: seed %i', async (seed) => {
    const f = await StoreFixture.open(database, 8);
    const o = new Operation(f);
    try {
      const random = new Random(seed);
      const dispute = new Dispute(f, o, () => random.next());
      await dispute.run();
      await o.relays.stopAll();
      const states = await f.store.statesOf(f.dataSource, ids(dispute.messages));
      for (const { messageId } of dispute.messages) {
        const published = dispute.publishers.published.filter((record) => record.messageId === messageId).length;
        const replayed = dispute.replayed.get(messageId) ?? 0;
        const state = states.get(messageId);
        const seen = `${messageId}: ${state}, published ${published}, replayed ${replayed}`;
        expect(['sent', 'dead', 'discarded', undefined], seen).toContain(state);
        // What was purged was sent, discarded or dead.
        expect(state === undefined ? [0, 1] : [Number(state === 'sent')], seen).toContain(published - replayed);
      }
      expect([await f.count('hold'), await f.count('held'), await f.count('pending')]).toEqual([0, 0, 0]);
      expect(await f.count('dead')).toBe([...states.values()].filter((state) => state === 'dead').length);
    } finally {
      await o.close();
      await f.close();
    }
  });
});
