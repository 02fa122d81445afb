import { afterEach, describe, expect, it } from 'vitest';
import { IDS_PER_DAY, type Partitions } from '../../libs/outbox/src/store/partitions';
import { type DatabaseName, SERVERS } from '../setup/databases';
import { message } from '../store/fixture';
import { DAY, NOTHING_ELSE, PartitionStage, QUICK } from './partition-stage';

describe.each(SERVERS)('retention by partitions on %s', (database: DatabaseName) => {
  let stage: PartitionStage;
  const open = async (change?: (partitions: Partitions) => Partial<Partitions>): Promise<PartitionStage> => (stage = await PartitionStage.open(database, change));
  afterEach(() => stage.f.close());

  const dayName = (day: number): string => `p${new Date(day * DAY).toISOString().slice(0, 10).replaceAll('-', '')}`;

  it('makes partitions some days ahead, and ids say the day', async () => {
    const { f } = await open();
    await f.add(message());
    expect((await f.sendAll())[0]?.id).toBe('1');
    const today = await stage.today();
    expect((await stage.pass()).outcome).toBe('done');
    // The first one is closed now, and its message is young.
    expect(await stage.names()).toEqual([...(database === 'postgres' ? ['first'] : ['p_first']), ...[0, 1, 2, 3].map((ahead) => dayName(today + ahead)), ...(database === 'postgres' ? ['rest'] : ['p_rest'])]);
    await f.add(message(), message());
    const next = [1n, 2n].map((n) => String(BigInt(today) * IDS_PER_DAY + n));
    expect((await f.sendAll()).map(({ id }) => id)).toEqual(next);
    const before = await stage.list();
    await stage.pass({ ...QUICK, ahead: 5 });
    expect((await stage.list()).filter(({ name }) => !before.some((partition) => partition.name === name))).toEqual(
      [4, 5].map((ahead) => ({ name: dayName(today + ahead), from: BigInt(today + ahead) * IDS_PER_DAY, below: BigInt(today + ahead + 1) * IDS_PER_DAY })),
    );
    await f.add(message());
    expect(BigInt((await f.sendAll())[0]?.id ?? 0)).toBe(BigInt(next[1] ?? 0) + 1n);
  });

  it('goes on after a week in which nothing ran', async () => {
    const { f } = await open();
    const first = await stage.sent(8, 3);
    // No partition of any of these days is there, and none is needed.
    await f.add(message({ key: 'late' }));
    await stage.pass();
    expect((await f.sendAll()).map(({ id }) => BigInt(id))).toEqual([first + 4n]);
    expect(await stage.names()).toContain('ago8');
    await f.add(message());
    expect(BigInt((await f.sendAll())[0]?.id ?? 0)).toBe(BigInt(await stage.today()) * IDS_PER_DAY + 1n);
  });

  it('takes messages whatever their ids, and deletes row by row what lies beyond all days', async () => {
    const { f } = await open();
    const beyond = 9_007_199_254_740_993n;
    await f.query(database === 'postgres' ? `ALTER SEQUENCE outbox_message_id_seq RESTART WITH ${beyond}` : `ALTER TABLE outbox_message AUTO_INCREMENT = ${beyond}`);
    await f.add(message({ key: 'a' }), message({ key: 'b' }), message({ key: 'waits' }));
    await f.once(({ messages }) => ({ sent: messages.filter(({ key }) => key !== 'waits') }));
    await f.sweep();
    const names = await stage.names();
    const { nowPlusMs } = f.store.dialect;
    await f.query(`UPDATE ${f.tables.message} SET created_at = ${nowPlusMs}, updated_at = ${nowPlusMs}`, [-8 * DAY, -8 * DAY]);
    expect((await stage.pass()).purged).toEqual({ sent: 2, ...NOTHING_ELSE });
    expect(await stage.keys()).toEqual(['waits']);
    expect(await stage.names()).toEqual(names.slice(1));
    expect((await f.sendAll()).map(({ key }) => key)).toEqual(['waits']);
  });

  it('drops a day when all of it was sent longer ago than the rule says, and counts what was in it', async () => {
    const { f } = await open();
    for (const [ago, count] of [[10, 25], [9, 12], [6, 4], [0, 2]] as const) await stage.sent(ago, count);
    const purged: number[] = [];
    const pass = await stage.cleaner().pass(QUICK, ({ sent }) => purged.push(sent));
    expect(pass).toEqual({ outcome: 'done', purged: { sent: 37, ...NOTHING_ELSE } });
    expect([...new Set(purged)]).toEqual([0, 25, 37]);
    expect(await stage.keys()).toEqual([...Array.from({ length: 4 }, () => 'sent-6'), 'sent-0', 'sent-0']);
    expect(await stage.names()).toEqual(expect.arrayContaining(['ago6', 'ago0']));
    expect(await stage.names()).not.toEqual(expect.arrayContaining(['ago9']));
    // A message of an old day that was sent yesterday, after an outage, keeps the day.
    await f.query(`UPDATE ${f.tables.message} SET created_at = ${f.store.dialect.nowPlusMs} WHERE message_key = 'sent-6'`, [-20 * DAY]);
    expect((await stage.pass()).purged.sent).toBe(0);
  });

  it('keeps a day with one message that is pending, held, dead, lost or not swept, and cleans around it', async () => {
    const { f } = await open();
    const refused = (key: string, parks: boolean): Promise<void> =>
      stage.settle(key, (its) => {
        const refusals = its.map((it) => ({ message: it, error: 'no', delayMs: DAY, blocks: false }));
        return parks ? { parked: refusals } : { retried: refusals };
      });
    const states = ['pending', 'held', 'dead', 'lost', 'not swept', 'sent'] as const;
    for (const [index, state] of states.entries()) {
      const ago = 20 - index;
      const first = await stage.sent(ago, 5);
      await f.add(message({ key: state }));
      if (state === 'held' || state === 'dead') await refused(state, state === 'dead');
      if (state === 'lost') await f.query(`DELETE FROM ${f.tables.pending} WHERE id = ${first + 6n}`);
      if (state === 'sent') {
        await f.sweep();
        await stage.send(state);
        await f.sweep();
        await stage.send('not swept');
      }
      await stage.age(ago, first);
    }
    await stage.begin(0);
    expect((await stage.pass()).purged).toEqual({ sent: 5 * 6 + 1, ...NOTHING_ELSE });
    expect(await stage.keys()).toEqual(states.slice(0, -1));
    expect((await stage.names()).filter((name) => name.startsWith('ago'))).toEqual(['ago20', 'ago19', 'ago18', 'ago17', 'ago16', 'ago0']);
    await f.sweep();
    await stage.age(16, await stage.firstOf(16));
    expect((await stage.pass({ ...QUICK, dead: 9 * DAY })).purged).toEqual({ ...NOTHING_ELSE, sent: 1, dead: 1 });
    expect((await stage.names()).filter((name) => name.startsWith('ago'))).toEqual(['ago20', 'ago19', 'ago17', 'ago0']);
    await f.makeDue();
    for (const key of ['held', 'pending']) await stage.send(key);
  });

  it('keeps a day to which something was committed, or requeued, after it was looked through', async () => {
    const dropped: string[] = [];
    let between: (name: string) => Promise<unknown> = async () => undefined;
    const { f } = await open((partitions) => ({
      async drop(connection, name, isFree) {
        await between(name);
        dropped.push(name);
        return partitions.drop(connection, name, isFree);
      },
    }));
    await stage.make(10, 9, 0);
    await stage.sent(10, 5);
    // The first partition, which is empty, is not of interest.
    await stage.dropFirst();
    const late = f.dataSource.createQueryRunner();
    await late.startTransaction();
    await f.store.add(late, [message({ key: 'late' })]);
    await stage.sent(9, 5);
    await stage.begin(0);
    const [old] = await f.query<{ message_id: string }>(`SELECT message_id FROM ${f.tables.message} WHERE message_key = 'sent-9'`);
    between = async (name) => {
      if (name === 'ago10') await late.commitTransaction();
      if (name !== 'ago9') return;
      // As a replay does it.
      await f.query(`UPDATE ${f.tables.message} SET status = 0 WHERE message_id = ?`, [old?.message_id]);
      await f.query(`INSERT INTO ${f.tables.pending} (lane, id, bytes) SELECT 0, id, 10 FROM ${f.tables.message} WHERE message_id = ?`, [old?.message_id]);
    };
    expect((await stage.pass()).purged.sent).toBe(0);
    expect(dropped).toEqual(expect.arrayContaining(['ago10', 'ago9']));
    expect(await stage.names()).toEqual(expect.arrayContaining(['ago10', 'ago9']));
    for (const key of ['late', 'sent-9']) await stage.send(key);
    expect(await f.count('pending')).toBe(0);
    await late.release();
  });

  it('waits for a transaction that stays open no longer than writers can bear, and drops the day later', async () => {
    const { f } = await open();
    await stage.make(10, 0);
    await stage.sent(10, 5);
    const open10 = f.dataSource.createQueryRunner();
    await open10.startTransaction();
    await f.store.add(open10, [message({ key: 'open' })]);
    await stage.begin(0);
    const ended = { pass: false };
    const pass = stage.pass().finally(() => (ended.pass = true));
    let written = 0;
    while (!ended.pass) {
      // A writer who would fail if it had to wait for long.
      await f.transaction(async (queryRunner) => {
        await queryRunner.query(database === 'postgres' ? `SET LOCAL lock_timeout = '5s'` : 'SET SESSION lock_wait_timeout = 5');
        await f.store.add(queryRunner, [message({ key: 'business' })]);
      });
      written++;
    }
    expect((await pass).purged.sent).toBe(0);
    expect(written).toBeGreaterThan(0);
    expect(await stage.names()).toContain('ago10');
    expect((await stage.keys()).filter((key) => key === 'sent-10')).toHaveLength(5);
    await open10.rollbackTransaction();
    await open10.release();
    expect((await stage.pass()).purged.sent).toBe(5);
    expect(await stage.names()).not.toContain('ago10');
    expect(await f.count('pending')).toBe(written);
  });

  it('is the work of one cleaner at a time, and done once', async () => {
    const { f } = await open();
    for (const ago of [12, 11, 10]) await stage.sent(ago, 5);
    await stage.begin(0);
    const passes = await Promise.all([stage.pass(), stage.pass(), stage.pass()]);
    expect(passes.some(({ outcome }) => outcome === 'done')).toBe(true);
    expect(passes.reduce((sum, { purged }) => sum + purged.sent, 0)).toBe(15);
    expect(await f.count('message')).toBe(0);
    expect(await stage.names()).toHaveLength(5);
  });

  it('is taken up by the next pass when a cleaner dies with the log locked', async () => {
    let kill = true;
    const { f } = await open((partitions) => ({
      drop: (connection, name, isFree) =>
        partitions.drop(connection, name, async () => {
          if (!kill) return isFree();
          kill = false;
          const [row] = (await connection.query(database === 'postgres' ? 'SELECT pg_backend_pid() AS id' : 'SELECT CONNECTION_ID() AS id')) as { id: number }[];
          await f.query(database === 'postgres' ? `SELECT pg_terminate_backend(${row?.id})` : `KILL ${row?.id}`);
          return true;
        }),
    }));
    await stage.sent(10, 5);
    await stage.begin(0);
    await expect(stage.pass()).rejects.toThrow();
    await f.add(message({ key: 'business' }));
    expect((await stage.pass()).purged.sent).toBe(5);
    expect((await f.sendAll()).map(({ key }) => key)).toEqual(['business']);
  });

  it('is seen in the sizes of the tables', async () => {
    const { f } = await open();
    await stage.sent(1, 30);
    await stage.sent(0, 20);
    for (const name of ['message', 'pending'] as const) await f.query(database === 'postgres' ? `ANALYZE ${f.tables[name]}` : `ANALYZE TABLE ${f.tables[name]}`);
    const sizes = await f.query<{ name: string; n: string; bytes: string }>(f.store.dialect.tableSizes ?? '');
    const log = sizes.find(({ name }) => name === 'outbox_message');
    if (database === 'postgres') expect(Number(log?.n)).toBe(50);
    expect(Number(log?.bytes)).toBeGreaterThan(0);
  });
});
