import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { OutboxMessage } from '../../../libs/outbox/src/event/message';
import type { ClaimedMessage } from '../../../libs/outbox/src/store/claim';
import { detectDialect } from '../../../libs/outbox/src/store/detect-dialect';
import { createTables } from '../../../libs/outbox/src/store/migration';
import { OutboxStore } from '../../../libs/outbox/src/store/outbox-store';
import { tableNames } from '../../../libs/outbox/src/store/tables';
import type { DatabaseName } from '../../setup/databases';
import { ids, message, StoreFixture, type FixtureOptions } from '../fixture';

const LANES = 8;
const LIMITS = { lanes: LANES, rows: 1000, bytes: 1_000_000 };

/** What a store must do on every database. */
export function describeStore(database: DatabaseName, options: FixtureOptions = {}): void {
  let f: StoreFixture;
  const add = (...messages: OutboxMessage[]): Promise<void> => f.add(...messages);
  const once: StoreFixture['once'] = (decide, limits = LIMITS) => f.once(decide, limits);
  const sendAll = (): Promise<readonly ClaimedMessage[]> => f.sendAll();

  beforeAll(async () => {
    f = await StoreFixture.open(database, LANES, options);
  });
  beforeEach(() => f.clear());
  afterAll(() => f.close());

  it('can make its tables again, with nothing changed', async () => {
    await add(message());
    await createTables(f.dataSource, f.store.dialect, LANES, options.partitioned === true);
    await f.store.check(f.dataSource);
    expect((await f.store.backlog(f.dataSource)).pending).toBe(1);
  });

  it('refuses tables that were made for another number of lanes', async () => {
    const other = new OutboxStore(f.store.dialect, LANES + 1, 'commit');
    await expect(other.check(f.dataSource)).rejects.toMatchObject({ code: 'OUTBOX_LANES_MISMATCH' });
  });

  it('says what to do when the tables are missing', async () => {
    const names = tableNames({ tables: { message: 'not_there' } });
    const dialect = await detectDialect(f.dataSource.options, f.dataSource, names);
    await expect(new OutboxStore(dialect, LANES, 'commit').check(f.dataSource)).rejects.toMatchObject({
      code: 'OUTBOX_TABLES_MISSING',
    });
  });

  it('gives back what was added, byte for byte and in order', async () => {
    const key = 'Schlüssel 🔑 ';
    const messages = [
      message({ key, payload: '{"b":1,"a":"😀"}', headers: { 'x-näme': 'wert ✓' }, tenantId: 't1', traceparent: '00-a-b-01' }),
      message({ key, payload: null }),
      message({ key, payload: '' }),
      message({ key, payload: JSON.stringify('x'.repeat(1_000_000)) }),
    ];
    await add(...messages);
    const claimed = await once(({ messages: sent }) => ({ sent }), { ...LIMITS, bytes: 10_000_000 });
    expect(claimed.map(({ id: _id, lane: _lane, createdAt: _at, attempts: _n, source: _s, bytes: _b, defect: _d, ...rest }) => rest)).toEqual(messages);
    expect(claimed.every(({ attempts, source }) => attempts === 0 && source === 'pending')).toBe(true);
  });

  // D13, and the session's time zone must not matter either.
  it('stamps messages with the database clock in UTC', async () => {
    await add(message());
    const [claimed] = await sendAll();
    expect(Math.abs((claimed?.createdAt ?? 0) - Date.now())).toBeLessThan(600_000);
  });

  it('adds thousands of messages in one transaction, in order', async () => {
    const messages = Array.from({ length: 2500 }, (_, i) => message({ payload: `${i}` }));
    await add(...messages);
    const claimed = await once(({ messages: sent }) => ({ sent }), { ...LIMITS, rows: 5000 });
    expect(ids(claimed)).toEqual(ids(messages));
    expect(await sendAll()).toEqual([]);
  });

  // D1
  it('works with ids that a JavaScript number cannot hold', async () => {
    const first = '9007199254740993';
    await f.dataSource.query(
      {
        mysql: `ALTER TABLE outbox_message AUTO_INCREMENT = ${first}`,
        mariadb: `ALTER TABLE outbox_message AUTO_INCREMENT = ${first}`,
        postgres: `ALTER SEQUENCE outbox_message_id_seq RESTART WITH ${first}`,
        sqlite: `UPDATE sqlite_sequence SET seq = ${first} - 1 WHERE name = 'outbox_message'`,
      }[database],
    );
    const messages = Array.from({ length: 5 }, () => message());
    await add(...messages);
    const claimed = await sendAll();
    expect(ids(claimed)).toEqual(ids(messages));
    expect(claimed.map(({ id }) => id)).toEqual(messages.map((_, i) => String(BigInt(first) + BigInt(i))));
    expect((await f.store.backlog(f.dataSource)).pending).toBe(0);
  });

  it.skipIf(database === 'postgres' || database === 'sqlite')('works where ids go in steps, as on servers that replicate in a circle', async () => {
    const messages = Array.from({ length: 5 }, () => message());
    await f.transaction(async (queryRunner) => {
      await queryRunner.query('SET SESSION auto_increment_increment = 3');
      await f.store.add(queryRunner, messages);
      await queryRunner.query('SET SESSION auto_increment_increment = DEFAULT');
    });
    const claimed = await sendAll();
    expect(ids(claimed)).toEqual(ids(messages));
    expect(BigInt(claimed[4]?.id ?? 0) - BigInt(claimed[0]?.id ?? 0)).toBe(12n);
  });

  it('leaves what is not settled to be claimed again', async () => {
    const [a, b, c] = [message(), message(), message()] as const;
    await add(a, b, c);
    await once(({ messages }) => ({ sent: messages.slice(0, 1) }));
    expect(ids(await once(() => ({})))).toEqual(ids([b, c]));
    const session = await f.session();
    await session.claim(LIMITS);
    await session.release();
    expect(ids(await sendAll())).toEqual(ids([b, c]));
    expect(await f.store.backlog(f.dataSource)).toEqual({ pending: 0, held: 0, dead: 0, oldestAge: null });
  });

  it('bounds a claim by bytes, but always takes one message', async () => {
    const messages = Array.from({ length: 4 }, () => message({ payload: 'x'.repeat(1000) }));
    await add(...messages);
    const limits = { ...LIMITS, bytes: 2500 };
    expect(ids(await once(({ messages: sent }) => ({ sent }), limits))).toEqual(ids(messages.slice(0, 2)));
    expect(ids(await once(({ messages: sent }) => ({ sent }), { ...limits, bytes: 1 }))).toEqual(ids(messages.slice(2, 3)));
    expect((await f.store.backlog(f.dataSource)).pending).toBe(1);
  });
}
