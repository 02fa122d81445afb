import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { SERVERS } from '../setup/databases';
import { Note, Notes, NoteWritten } from '../setup/notes';

describe.each(SERVERS)('a transaction that %s has undone', (database) => {
  let app: TestApp;
  let notes: Notes;
  const isMySql = database !== 'postgres';

  beforeAll(async () => {
    app = await startApp(database, { entities: [Note], providers: [Notes], dataSource: { poolSize: 6 } });
    notes = app.app.get(Notes);
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    for (const table of ['note', 'outbox_message', 'outbox_pending']) await app.dataSource.query(`DELETE FROM ${table}`);
    await notes.repository.insert([{ id: 100 }, { id: 101 }]);
  });

  const update = (id: number): Promise<unknown> => notes.repository.update({ id }, { text: 'x' });
  async function expectNothingWritten(): Promise<void> {
    expect(await notes.rows()).toEqual([100, 101]);
    expect(await app.logged()).toEqual([]);
  }

  /** Two transactions that lock two rows in opposite order; one becomes the victim. Says which did and how. */
  async function deadlock(work: (first: number, second: number, id: number) => Promise<unknown>): Promise<PromiseSettledResult<unknown>[]> {
    let arrived = 0;
    let bothHere!: () => void;
    const both = new Promise<void>((resolve) => (bothHere = resolve));
    const meet = async (): Promise<void> => {
      if (++arrived === 2) bothHere();
      await both;
    };
    const side = (first: number, second: number, id: number): Promise<unknown> =>
      notes.transactions.run(async () => {
        await notes.write(id);
        await update(first);
        await meet();
        await work(first, second, id);
      });
    return Promise.allSettled([side(100, 101, 1), side(101, 100, 2)]);
  }

  // C11
  it('by a deadlock cannot be committed, though the code swallowed the error', async () => {
    const outcomes = await deadlock(async (_first, second) => {
      await update(second).catch(() => undefined);
    });
    const failed = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(failed).toHaveLength(1);
    expect(failed[0]?.reason).toMatchObject({ code: 'OUTBOX_TRANSACTION_DOOMED', retryable: true, cause: { name: 'QueryFailedError' } });
    const kept = outcomes.findIndex(({ status }) => status === 'fulfilled') + 1;
    expect(await notes.rows()).toEqual([kept, 100, 101]);
    expect(await app.logged()).toEqual([{ id: kept }]);
  });

  it('by a deadlock takes no further statement, which would commit by itself', async () => {
    const later: unknown[] = [];
    const outcomes = await deadlock(async (_first, second, id) => {
      await update(second).catch(async () => {
        later.push(await notes.repository.insert({ id: id + 10 }).catch((error: unknown) => error));
      });
    });
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(1);
    expect(later).toHaveLength(1);
    expect(later[0]).toMatchObject(isMySql ? { code: 'OUTBOX_TRANSACTION_DOOMED' } : { name: 'QueryFailedError' });
    expect(await notes.rows()).toEqual([expect.any(Number), 100, 101]);
  });

  it('by a deadlock inside a savepoint is lost as a whole on MySQL, and mended on PostgreSQL', async () => {
    const outcomes = await deadlock(async (_first, second) => {
      await notes.transactions.run({ propagation: 'NESTED' }, () => update(second)).catch(() => undefined);
    });
    const failed = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(failed).toHaveLength(isMySql ? 1 : 0);
    const events = await app.logged();
    expect(events).toHaveLength(isMySql ? 1 : 2);
    expect((await notes.rows()).slice(0, -2)).toEqual(events.map((event) => (event as { id: number }).id).toSorted());
  });

  // C13
  it('by a deadlock is run again with retries, and its events are those of the run that committed', async () => {
    let arrived = 0;
    let runs = 0;
    let bothHere!: () => void;
    const both = new Promise<void>((resolve) => (bothHere = resolve));
    const side = (first: number, second: number, id: number): Promise<unknown> =>
      notes.transactions.run({ retries: 3 }, async () => {
        runs++;
        await notes.write(id);
        await update(first);
        if (++arrived === 2) bothHere();
        await both;
        await update(second);
      });
    await Promise.all([side(100, 101, 1), side(101, 100, 2)]);
    expect(runs).toBeGreaterThan(2);
    expect(await notes.rows()).toEqual([1, 2, 100, 101]);
    expect(await app.logged()).toHaveLength(2);
  });

  it('is not run again without need or end', async () => {
    let runs = 0;
    const failing = (error: unknown) => async (): Promise<never> => {
      runs++;
      throw error;
    };
    await expect(notes.transactions.run({ retries: 3 }, failing(new Error('own')))).rejects.toThrow('own');
    expect(runs).toBe(1);
    const conflict = Object.assign(new Error('conflict'), { code: isMySql ? 'ER_LOCK_DEADLOCK' : '40001' });
    await expect(notes.transactions.run({ retries: 2 }, failing(conflict))).rejects.toThrow('conflict');
    expect(runs).toBe(4);
  });

  // C12
  it('by half, at a lock wait timeout, cannot be committed', async () => {
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query("UPDATE note SET text = 'held' WHERE id = 100");
    try {
      await expect(
        notes.transactions.run(async () => {
          await app.dataSource.query(isMySql ? 'SET SESSION innodb_lock_wait_timeout = 1' : "SET LOCAL lock_timeout = '200ms'");
          await notes.write(1);
          await update(100).catch(() => undefined);
        }),
      ).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_DOOMED', cause: { name: 'QueryFailedError' } });
    } finally {
      await holder.rollbackTransaction();
      await holder.release();
    }
    await expectNothingWritten();
  });

  it('by half inside a savepoint goes on after the savepoint is undone', async () => {
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query("UPDATE note SET text = 'held' WHERE id = 100");
    try {
      await notes.transactions.run(async () => {
        await app.dataSource.query(isMySql ? 'SET SESSION innodb_lock_wait_timeout = 1' : "SET LOCAL lock_timeout = '200ms'");
        await notes.write(1);
        await notes.transactions
          .run({ propagation: 'NESTED' }, async () => {
            await notes.write(2);
            await update(100);
          })
          .catch(() => undefined);
      });
    } finally {
      await holder.rollbackTransaction();
      await holder.release();
    }
    expect(await notes.rows()).toEqual([1, 100, 101]);
    expect(await app.logged()).toEqual([{ id: 1 }]);
  });

  it('at any error outside a savepoint on PostgreSQL, and at none of the kind on MySQL', async () => {
    const swallowing = notes.transactions.run(async () => {
      await notes.write(1);
      await notes.repository.insert({ id: 100 }).catch(() => undefined);
    });
    if (isMySql) {
      await swallowing;
      expect(await notes.rows()).toEqual([1, 100, 101]);
    } else {
      await expect(swallowing).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_DOOMED', cause: { code: '23505' } });
      await expectNothingWritten();
    }
  });

  it('at an error of an explicit manager, too', async () => {
    if (isMySql) return;
    await expect(
      app.dataSource.transaction(async (manager) => {
        notes.outbox.emit(NoteWritten.of(1), { manager });
        await manager.insert(Note, { id: 100 }).catch(() => undefined);
      }),
    ).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_DOOMED' });
    await expectNothingWritten();
  });

  it('by losing its connection leaves nothing, and the pool works on', async () => {
    const kill = async (): Promise<void> => {
      const [row] = (await app.dataSource.query(
        isMySql ? 'SELECT CONNECTION_ID() AS id' : 'SELECT pg_backend_pid() AS id',
      )) as { id: number }[];
      await notes.transactions.run({ propagation: 'NOT_SUPPORTED' }, () =>
        app.dataSource.query(isMySql ? `KILL ${row?.id}` : `SELECT pg_terminate_backend(${row?.id})`),
      );
    };
    const silence = (): void => undefined;
    await expect(
      notes.transactions.run(async () => {
        await notes.write(1);
        await kill();
        await notes.write(2).catch(silence);
      }),
    ).rejects.toThrow();
    await expect(
      notes.transactions.run(async () => {
        await notes.write(3);
        await kill();
      }),
    ).rejects.toThrow();
    await expectNothingWritten();
    await notes.transactions.run(() => notes.write(4));
    expect(await notes.rows()).toEqual([4, 100, 101]);
  });

  // C15
  it('by DDL is noticed on MySQL, where it commits', async () => {
    const outcome = notes.transactions.run(async () => {
      await notes.write(1);
      await app.dataSource.query('CREATE TABLE made_inside (id INT)');
      await notes.write(2);
    });
    if (isMySql) {
      await expect(outcome).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_DOOMED' });
      // What stood before the DDL is committed, by MySQL's nature; of what came after, nothing, and no event at all.
      expect(await notes.rows()).toEqual([1, 100, 101]);
      expect(await app.logged()).toEqual([]);
    } else {
      await outcome;
      expect(await app.logged()).toHaveLength(2);
    }
    await app.dataSource.query('DROP TABLE made_inside');
  });

  it('by hand, inside, is an error', async () => {
    await expect(
      notes.transactions.run(async () => {
        await notes.write(1);
        await app.dataSource.query('ROLLBACK');
        await notes.write(2);
      }),
    ).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_CLOSED' });
    await expectNothingWritten();
  });

  it('or left open by hand, inside, is an error and does not leak into the pool', async () => {
    await expect(
      notes.transactions.run(async () => {
        await app.dataSource.createQueryRunner().startTransaction();
        await notes.write(1);
      }),
    ).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_DOOMED' });
    await expectNothingWritten();
  });
});
