import { describe, expect, it } from 'vitest';
import type { OutboxAdmin } from '../../libs/outbox/src/operate/outbox-admin';
import type { PublishRecord } from '../../libs/outbox/src/publish/publisher';
import { mysqlDialect } from '../../libs/outbox/src/store/mysql.dialect';
import { tableNames } from '../../libs/outbox/src/store/tables';
import { Random } from '../chaos/src/random';
import { acknowledged, refused, ScriptedPublishers } from '../relay/scripted-publisher';
import { DATABASES } from '../setup/databases';
import { until } from '../relay/fixture';
import { ids, message, StoreFixture } from '../store/fixture';
import { BY, Operation } from './fixture';

const SEEDS = [1, 2, 3, 4, 5, 6];
/** Of these a refused message blocks its key; of the others it is passed by. */
const STRICT = ['s0', 's1', 's2'];
const KEYS = [...STRICT, 'l0', 'l1', 'l2'];

/** Writers, two relays and two operators on the same keys, until all is sent or discarded. */
class Turmoil {
  readonly committed: { readonly id: string; readonly key: string }[] = [];
  readonly discarded = new Set<string>();
  readonly publishers = new ScriptedPublishers();
  private poison = 0.15;
  private writing = true;

  constructor(
    private readonly f: StoreFixture,
    private readonly o: Operation,
    private readonly next: () => number,
  ) {
    this.publishers.answer = (records) => records.map(() => (this.next() < this.poison ? refused : acknowledged));
  }

  async run(): Promise<void> {
    for (let i = 0; i < 2; i++) {
      this.o.relays.start({ batchSize: 20, lanesPerClaim: 3, maxAttempts: 2, retryDelay: 5, onExhausted: ({ key }) => (STRICT.includes(String(key)) ? 'block' : 'continue') }, this.publishers, 20);
    }
    const admins = [this.o.admin(), this.o.admin()];
    const operating = admins.map((admin) => this.operate(admin));
    await Promise.all(KEYS.map((key) => this.write(key)));
    this.writing = false;
    await Promise.all(operating);
    this.poison = 0;
    const [admin] = admins;
    if (!admin) return;
    await admin.resume(BY, 'orders');
    await admin.requeue({ limit: 10_000 }, BY);
    for (const key of KEYS) await admin.release('orders', key, BY);
    await until(async () => {
      // What was parked while the broker still refused.
      await admin.requeue({ limit: 10_000 }, BY);
      return (await this.f.count('pending')) + (await this.f.count('held')) + (await this.f.count('dead')) === 0;
    });
    await this.o.relays.stopAll();
  }

  /** The only writer of its key: its order is that of the commits. */
  private async write(key: string): Promise<void> {
    for (let i = 0; i < 12; i++) {
      const messages = Array.from({ length: 1 + Math.floor(this.next() * 3) }, () => message({ key }));
      await (this.f.store.dialect.name === 'sqlite' ? this.addSerially(messages) : this.f.add(...messages));
      this.committed.push(...ids(messages).map((id) => ({ id, key })));
    }
  }

  private async addSerially(messages: Parameters<StoreFixture['add']>): Promise<void> {
    const queryRunner = this.o.relays.serial.create();
    await queryRunner.startTransaction();
    await this.f.store.add(queryRunner, messages);
    await queryRunner.commitTransaction();
    await queryRunner.release();
  }

  private async operate(admin: OutboxAdmin): Promise<void> {
    while (this.writing) {
      const key = KEYS[Math.floor(this.next() * KEYS.length)] ?? 's0';
      const act = this.next();
      if (act < 0.3) await admin.requeue({ limit: 5 }, BY);
      else if (act < 0.5) await this.discardSome(admin, key);
      else if (act < 0.65) await admin.block('orders', key, BY);
      // A strict key that a dead message blocks is for requeueing: letting it go on would pass the message by.
      else if (act < 0.85 && !STRICT.includes(key)) await admin.release('orders', key, BY);
      else if (act < 0.9) await admin.pause(BY, 'orders');
      else await admin.resume(BY, 'orders');
    }
    await admin.resume(BY, 'orders');
  }

  private async discardSome(admin: OutboxAdmin, key: string): Promise<void> {
    const { messages } = await admin.find({ key, state: this.next() < 0.5 ? 'dead' : 'held' }, { limit: 2 });
    const chosen = messages.map(({ messageId }) => messageId);
    const { skipped, notFound } = await admin.discard(chosen, BY);
    const spared = new Set([...skipped.filter(({ state }) => state !== 'discarded').map(({ id }) => id), ...notFound]);
    for (const id of chosen) if (!spared.has(id)) this.discarded.add(id);
  }
}

const KINDS = [
  ...DATABASES.map((database) => ({ kind: database, database, old: false })),
  { kind: 'an old mysql', database: 'mysql', old: true } as const,
];

describe.each(KINDS)('two operators, two relays and writers on $kind', ({ database, old }) => {
  it.each(SEEDS)('lose nothing, send nothing twice and nothing that was discarded, and keep order: seed %i', async (seed) => {
    const f = await StoreFixture.open(database, 8, {
      adapt: (dialect) => (old ? mysqlDialect('mysql', tableNames({}), { skipLocked: false, noPad: true, jsonTable: false }) : dialect),
    });
    const o = new Operation(f);
    try {
      const random = new Random(seed);
      const turmoil = new Turmoil(f, o, () => random.next());
      await turmoil.run();
      const { committed, discarded, publishers } = turmoil;
      const published = publishers.published.map(({ messageId }: PublishRecord) => messageId);
      expect(published.length).toBe(new Set(published).size);
      expect(published.filter((id) => discarded.has(id))).toEqual([]);
      const kept = committed.filter(({ id }) => !discarded.has(id));
      expect(new Set(published)).toEqual(new Set(kept.map(({ id }) => id)));
      for (const key of STRICT) {
        const expected = kept.filter((each) => each.key === key).map(({ id }) => id);
        const own = new Set(expected);
        expect(published.filter((id) => own.has(id)), key).toEqual(expected);
      }
      expect(await f.count('hold')).toBe(0);
    } finally {
      await o.close();
      await f.close();
    }
  });
});
