import { setTimeout as sleep } from 'node:timers/promises';
import { type EntityManager, type EntitySubscriberInterface, EventSubscriber, type TransactionCommitEvent } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { DATABASES } from '../setup/databases';
import { Note, Notes, NoteWritten } from '../setup/notes';

const silence = (): void => undefined;
const CLOSED = { code: 'OUTBOX_TRANSACTION_CLOSED' };
const DOOMED = { code: 'OUTBOX_TRANSACTION_DOOMED' };

/** What the app's subscriber does at its next call; a test sets it. */
const listen: {
  beforeCommit?: (manager: EntityManager) => Promise<unknown> | void;
  afterCommit?: () => Promise<unknown> | void;
  afterQuery?: (query: string) => void;
} = {};

@EventSubscriber()
class Listener implements EntitySubscriberInterface {
  beforeTransactionCommit({ manager }: TransactionCommitEvent): Promise<unknown> | void {
    const listener = listen.beforeCommit;
    delete listen.beforeCommit;
    return listener?.(manager);
  }

  afterTransactionCommit(): Promise<unknown> | void {
    const listener = listen.afterCommit;
    delete listen.afterCommit;
    return listener?.();
  }

  afterQuery({ query }: { query: string }): void {
    listen.afterQuery?.(query);
  }
}

/** Places where an event or a row could slip out of its transaction. */
describe.each(DATABASES)('a transaction on %s', (database) => {
  let app: TestApp;
  let notes: Notes;
  const isMySql = database === 'mysql' || database === 'mariadb';
  const isSqlite = database === 'sqlite';

  beforeAll(async () => {
    app = await startApp(database, {
      entities: [Note],
      providers: [Notes],
      dataSource: { poolSize: 4, subscribers: [Listener], cache: true },
    });
    notes = app.app.get(Notes);
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    for (const name of Object.keys(listen)) Reflect.deleteProperty(listen, name);
    for (const table of ['note', 'outbox_message', 'outbox_pending']) await app.dataSource.query(`DELETE FROM ${table}`);
  });

  const run = <T>(work: () => Promise<T>): Promise<T> => notes.transactions.run(work);
  const nested = <T>(work: () => Promise<T>): Promise<T> => notes.transactions.run({ propagation: 'NESTED' }, work);
  const sql = (text: string): Promise<unknown> => app.dataSource.query(text);
  const fails = async (): Promise<never> => {
    throw new Error('part');
  };
  async function whileLocked(id: number, work: () => Promise<void>): Promise<void> {
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query(`UPDATE note SET text = 'held' WHERE id = ${id}`);
    try {
      await work();
    } finally {
      await holder.rollbackTransaction();
      await holder.release();
    }
  }
  async function expectWritten(...ids: number[]): Promise<void> {
    expect(await notes.rows()).toEqual(ids);
    expect((await app.logged()).map((event) => (event as { id: number }).id).toSorted((a, b) => a - b)).toEqual(ids);
  }

  describe('that is ended by hand', () => {
    it.each(['ROLLBACK', isSqlite ? 'rollback transaction;' : 'rollback work'])('by %s is refused, and the next one works', async (command) => {
      await expect(
        run(async () => {
          await notes.write(1);
          await sql(command);
        }),
      ).rejects.toMatchObject(DOOMED);
      await run(() => notes.write(2));
      await expectWritten(2);
    });

    it('by COMMIT is committed, and takes nothing more', async () => {
      const hooks: string[] = [];
      let later: unknown;
      await run(async () => {
        notes.transactions.afterCommit(() => hooks.push('committed'));
        await notes.write(1);
        await sql('COMMIT');
        later = await notes.write(2).catch((error: unknown) => error);
      });
      expect(later).toMatchObject(CLOSED);
      expect(hooks).toEqual(['committed']);
      await run(() => notes.write(3));
      await expectWritten(1, 3);
    });

    it('by COMMIT AND CHAIN leaves no open transaction in the pool', async () => {
      if (isSqlite) return;
      await run(async () => {
        await notes.write(1);
        await sql('COMMIT AND CHAIN');
      });
      await run(() => notes.write(2));
      await expectWritten(1, 2);
    });

    it.each(isSqlite || database === 'postgres' ? ['END', 'end transaction'] : [])('by %s writes its events', async (command) => {
      await run(async () => {
        await notes.write(1);
        await sql(command);
      });
      await expectWritten(1);
    });

    it('by ABORT is refused', async () => {
      if (database !== 'postgres') return;
      await expect(
        run(async () => {
          await notes.write(1);
          await sql('ABORT');
        }),
      ).rejects.toMatchObject(DOOMED);
      await expectWritten();
    });

    it.each(['BEGIN', 'START TRANSACTION', '/* app */ begin'])('by %s, which commits on MySQL, is refused', async (command) => {
      if (isSqlite && /start/i.test(command)) return;
      await expect(
        run(async () => {
          await notes.write(1);
          await sql(command).catch(silence);
          await notes.write(2).catch(silence);
        }),
      ).rejects.toMatchObject(DOOMED);
      await expectWritten();
    });
  });

  describe('with savepoints', () => {
    it('knows them behind comments and in quotes', async () => {
      const quote = isMySql ? '`' : '"';
      await run(async () => {
        await notes.write(1);
        await sql('/* route=notes */ SAVEPOINT a');
        await notes.write(2);
        await sql(`-- another\n SAVEPOINT ${quote}my point${quote}`);
        await notes.write(3);
        await sql(`SAVEPOINT ${quote}my other${quote}`);
        await notes.write(4);
        await sql(`ROLLBACK TO SAVEPOINT ${quote}my point${quote}`);
        await notes.write(5);
        await sql('/* route=notes */ /* again */ ROLLBACK TO SAVEPOINT a');
        await notes.write(6);
      });
      await expectWritten(1, 6);
    });

    it('refuses work beside one, also when a savepoint inside it was undone', async () => {
      let inside!: () => void;
      let goOn!: () => void;
      const isInside = new Promise<void>((resolve) => (inside = resolve));
      const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
      await run(async () => {
        // Its event is emitted before the savepoint, its row would be undone with it.
        notes.outbox.emit(NoteWritten.of(1));
        const part = nested(async () => {
          await nested(fails).catch(silence);
          inside();
          await mayGoOn;
          throw new Error('undo');
        });
        await isInside;
        await expect(notes.repository.insert({ id: 1 })).rejects.toMatchObject({ code: 'OUTBOX_SAVEPOINT_CONFLICT' });
        goOn();
        await expect(part).rejects.toThrow('undo');
        await notes.repository.insert({ id: 1 });
      });
      await expectWritten(1);
    });

    it('is not mended by one that was set after the damage', async () => {
      if (!isMySql) return;
      await notes.repository.insert({ id: 100 });
      await whileLocked(100, () =>
        expect(
          run(async () => {
            await sql('SET SESSION innodb_lock_wait_timeout = 1');
            await nested(async () => {
              await notes.write(1);
              await notes.repository.update({ id: 100 }, { text: 'x' }).catch(silence);
            });
            await nested(fails).catch(silence);
          }),
        ).rejects.toMatchObject(DOOMED),
      );
      expect(await notes.rows()).toEqual([100]);
    });

    it('keeps what was sent before one beside it was undone', async () => {
      for (let id = 1; id <= 10; id++) {
        await run(() => {
          notes.outbox.emit(NoteWritten.of(id));
          return Promise.allSettled([sql(`INSERT INTO note (id, text) VALUES (${id}, '')`), nested(fails)]);
        });
      }
      await expectWritten(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    });

    it('undoes its own, not one that still ends inside it', async () => {
      for (let ticks = 0; ticks < 60; ticks++) {
        const later = async (): Promise<never> => {
          for (let i = 0; i < ticks; i++) await Promise.resolve();
          throw new Error('part');
        };
        await run(async () => {
          await nested(async () => {
            await notes.write(ticks);
            await Promise.all([nested(fails), later()]);
          }).catch(silence);
          await notes.write(1000 + ticks);
        }).catch(silence);
      }
      const rows = await notes.rows();
      await expectWritten(...rows);
      expect(rows.filter((id) => id < 1000)).toEqual([]);
    });

    it('one right after another, in parallel, are either kept or refused for what they are', async () => {
      for (let ticks = 0; ticks < 60; ticks++) {
        const later = async (): Promise<void> => {
          for (let i = 0; i < ticks; i++) await Promise.resolve();
          await nested(() => notes.write(1000 + ticks));
        };
        const [first, second] = await run(() => Promise.allSettled([nested(() => notes.write(ticks)), later()]));
        expect(first).toMatchObject({ status: 'fulfilled' });
        if (second?.status === 'rejected') expect(second.reason).toMatchObject({ code: 'OUTBOX_SAVEPOINT_CONFLICT' });
      }
      await expectWritten(...(await notes.rows()));
    });

    it.each(['commits', 'fails'])('left open by work that nobody waits for, when it %s, do not spoil the next transaction', async (end) => {
      for (let ticks = 0; ticks < 60; ticks++) {
        let late: Promise<unknown> | undefined;
        await run(async () => {
          await notes.write(ticks);
          late = nested(() => notes.write(1000 + ticks));
          late.catch(silence);
          for (let i = 0; i < ticks; i++) await Promise.resolve();
          if (end === 'fails') throw new Error('undo');
        }).catch(silence);
        await Promise.allSettled([late]);
        await run(() => notes.write(2000 + ticks));
      }
      const rows = await notes.rows();
      await expectWritten(...rows);
      expect(rows.filter((id) => id >= 2000)).toHaveLength(60);
      if (end === 'fails') expect(rows).toHaveLength(60);
    });
  });

  describe('around its end', () => {
    it('refuses events that come after its commit', async () => {
      let outcome: unknown;
      listen.afterCommit = () => {
        try {
          notes.outbox.emit(NoteWritten.of(2));
        } catch (error) {
          outcome = error;
        }
      };
      await run(() => notes.write(1));
      expect(outcome).toMatchObject(CLOSED);
      await expectWritten(1);
    });

    it('takes events and rows of a subscriber before its commit', async () => {
      listen.beforeCommit = async () => {
        await notes.write(2);
      };
      await run(() => notes.write(1));
      await expectWritten(1, 2);
    });

    it('of an explicit manager takes events and rows of a subscriber before its commit', async () => {
      listen.beforeCommit = async (manager) => {
        await manager.insert(Note, { id: 2 });
        notes.outbox.emit(NoteWritten.of(2), { manager });
      };
      await app.dataSource.transaction((manager) => manager.insert(Note, { id: 1 }));
      expect(await notes.rows()).toEqual([1, 2]);
      expect(await app.logged()).toEqual([{ id: 2 }]);
    });

    it('takes events that come while it writes its events', async () => {
      let emitted = 0;
      listen.afterQuery = (query) => {
        if (/INSERT INTO\W+outbox_message/i.test(query) && emitted++ === 0) notes.outbox.emit(NoteWritten.of(2));
      };
      await run(async () => {
        await notes.write(1);
        await notes.repository.insert({ id: 2 });
      });
      await expectWritten(1, 2);
    });

    it.each(['commit', 'rollback'])('has its statements behind it, awaited or not: %s', async (end) => {
      for (let id = 1; id <= 10; id++) {
        await run(async () => {
          notes.outbox.emit(NoteWritten.of(id));
          sql(`INSERT INTO note (id, text) VALUES (${id}, '')`).catch(silence);
          if (end === 'rollback') throw new Error('undo');
        }).catch(silence);
      }
      await expectWritten(...(end === 'commit' ? [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] : []));
    });

    it('takes nothing by a manager that was kept, while a subscriber holds up the end', async () => {
      let late: Promise<unknown> | undefined;
      listen.afterCommit = () => sleep(20);
      await run(async () => {
        await notes.write(1);
        await app.dataSource.transaction(async (kept) => {
          late = sleep(10).then(() => kept.insert(Note, { id: 2 }));
          late.catch(silence);
        });
        listen.afterCommit = () => sleep(20);
      });
      await expect(late).rejects.toMatchObject(CLOSED);
      await expectWritten(1);
    });

    it('takes nothing by a manager that was kept, after the end', async () => {
      let late: Promise<unknown> | undefined;
      await run(async () => {
        await notes.write(1);
        await app.dataSource.transaction(async (kept) => {
          late = sleep(20).then(() => kept.insert(Note, { id: 2 }));
          late.catch(silence);
        });
      });
      await expect(late).rejects.toThrow();
      await expectWritten(1);
    });

    it('of an explicit manager takes nothing once its COMMIT is sent', async () => {
      for (let ticks = 0; ticks < 30; ticks++) {
        let late: Promise<unknown> | undefined;
        await app.dataSource
          .transaction(async (manager) => {
            await manager.insert(Note, { id: ticks });
            notes.outbox.emit(NoteWritten.of(ticks), { manager });
            late = (async () => {
              for (let i = 0; i < ticks; i++) await Promise.resolve();
              notes.outbox.emit(NoteWritten.of(1000 + ticks), { manager });
              await manager.insert(Note, { id: 1000 + ticks });
            })();
            late.catch(silence);
          })
          .catch(silence);
        await Promise.allSettled([late]);
      }
      const events = (await app.logged()).map((event) => (event as { id: number }).id).toSorted((a, b) => a - b);
      const rows = await notes.rows();
      // No row without its event. An event whose row was refused is the program's own: it swallowed that error.
      expect(rows.filter((id) => !events.includes(id))).toEqual([]);
    });

    it('is not ended by a query runner of its own that is released or disposed of', async () => {
      await expect(
        run(async () => {
          const queryRunner = app.dataSource.createQueryRunner();
          await notes.write(1);
          await queryRunner.release();
          await queryRunner[Symbol.asyncDispose]();
          await notes.write(2);
          throw new Error('undo');
        }),
      ).rejects.toThrow('undo');
      await expectWritten();
    });
  });

  it('knows of an error in a stream', async () => {
    if (!isMySql) return;
    await notes.repository.insert({ id: 100 });
    await whileLocked(100, () =>
      expect(
        run(async () => {
          await notes.write(1);
          await sql('SET SESSION innodb_lock_wait_timeout = 1');
          const stream = await app.dataSource.createQueryRunner().stream('SELECT * FROM note WHERE id = 100 FOR UPDATE');
          await new Promise((resolve) => stream.on('error', resolve).resume());
          await notes.write(2);
        }),
      ).rejects.toMatchObject({ ...DOOMED, cause: { code: 'ER_LOCK_WAIT_TIMEOUT' } }),
    );
    expect(await notes.rows()).toEqual([100]);
  });

  it('gives its own query results to the cache, and takes them back', async () => {
    const find = (): Promise<Note[]> => notes.repository.find({ cache: { id: 'all', milliseconds: 60_000 } });
    await expect(
      run(async () => {
        await notes.write(1);
        expect(await find()).toHaveLength(1);
        throw new Error('undo');
      }),
    ).rejects.toThrow('undo');
    expect(await find()).toEqual([]);
    await app.dataSource.queryResultCache?.clear();
  });

  it('that could not begin keeps no other waiting', async () => {
    if (!isSqlite) return;
    const queryRunner = app.dataSource.createQueryRunner();
    await queryRunner.query('BEGIN');
    // On SQLite a transaction inside another is an error.
    await queryRunner.startTransaction().catch(silence);
    await queryRunner.release();
    await sql('ROLLBACK').catch(silence);
    await run(() => notes.write(1));
    await expectWritten(1);
  });

  it('that the database undid is lost as a whole', async () => {
    if (!isSqlite) return;
    await notes.repository.insert({ id: 100 });
    await expect(
      run(async () => {
        await notes.write(1);
        await sql("INSERT OR ROLLBACK INTO note (id, text) VALUES (100, '')").catch(silence);
        await notes.write(2);
      }),
    ).rejects.toMatchObject(DOOMED);
    expect(await notes.rows()).toEqual([100]);
    expect(await app.logged()).toEqual([]);
  });

  it('that saw another snapshot is lost as a whole on MariaDB', async () => {
    if (database !== 'mariadb') return;
    await notes.repository.insert({ id: 100 });
    await expect(
      run(async () => {
        await sql('SET SESSION innodb_snapshot_isolation = ON');
        await notes.write(1);
        await notes.repository.find();
        await notes.transactions.run({ propagation: 'NOT_SUPPORTED' }, () => notes.repository.update(100, { text: 'other' }));
        await expect(notes.repository.update(100, { text: 'mine' })).rejects.toMatchObject({ code: 'ER_CHECKREAD' });
        await notes.repository.insert({ id: 2 }).catch(silence);
      }),
    ).rejects.toMatchObject(DOOMED);
    expect(await notes.rows()).toEqual([100]);
  });

  it('that a procedure has committed is lost as a whole, as far as it is not yet', async () => {
    if (!isMySql) return;
    await sql('CREATE PROCEDURE commits() BEGIN SELECT 1; COMMIT; END');
    await expect(
      run(async () => {
        await notes.write(1);
        await sql('CALL commits()');
        await notes.write(2).catch(silence);
      }),
    ).rejects.toMatchObject(DOOMED);
    expect(await notes.rows()).toEqual([1]);
    expect(await app.logged()).toEqual([]);
  });

  it('waits for no other on one connection', async () => {
    if (!isSqlite) return;
    // On the other databases this goes over a second connection.
    const outcome = app.dataSource.transaction(async (manager) => {
      await manager.insert(Note, { id: 1 });
      await notes.repository.find();
    });
    await expect(outcome).rejects.toMatchObject({ code: 'OUTBOX_SQLITE_NESTED_TRANSACTION' });
    await expectWritten();
  });
});
