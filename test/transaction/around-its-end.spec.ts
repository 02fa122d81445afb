import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { DATABASES } from '../setup/databases';
import { Note, NoteWritten } from '../setup/notes';
import { CLOSED, listen, NotesFixture, silence } from './notes-fixture';

/** Places where an event or a row could slip out of its transaction. */
describe.each(DATABASES)('a transaction around its end on %s', (database) => {
  const f = NotesFixture.use(database);
  const { run, sql, expectWritten } = f;

  it('refuses events that come after its commit', async () => {
    let outcome: unknown;
    listen.afterCommit = () => {
      try {
        f.notes.outbox.emit(NoteWritten.of(2));
      } catch (error) {
        outcome = error;
      }
    };
    await run(() => f.notes.write(1));
    expect(outcome).toMatchObject(CLOSED);
    await expectWritten(1);
  });

  it('takes events and rows of a subscriber before its commit', async () => {
    listen.beforeCommit = async () => {
      await f.notes.write(2);
    };
    await run(() => f.notes.write(1));
    await expectWritten(1, 2);
  });

  it('of an explicit manager takes events and rows of a subscriber before its commit', async () => {
    listen.beforeCommit = async (manager) => {
      await manager.insert(Note, { id: 2 });
      f.notes.outbox.emit(NoteWritten.of(2), { manager });
    };
    await f.app.dataSource.transaction((manager) => manager.insert(Note, { id: 1 }));
    expect(await f.notes.rows()).toEqual([1, 2]);
    expect(await f.app.logged()).toEqual([{ id: 2 }]);
  });

  it('takes events that come while it writes its events', async () => {
    let emitted = 0;
    listen.afterQuery = (query) => {
      if (/INSERT INTO\W+outbox_message/i.test(query) && emitted++ === 0) f.notes.outbox.emit(NoteWritten.of(2));
    };
    await run(async () => {
      await f.notes.write(1);
      await f.notes.repository.insert({ id: 2 });
    });
    await expectWritten(1, 2);
  });

  it.each(['commit', 'rollback'])('has its statements behind it, awaited or not: %s', async (end) => {
    for (let id = 1; id <= 10; id++) {
      await run(async () => {
        f.notes.outbox.emit(NoteWritten.of(id));
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
      await f.notes.write(1);
      await f.app.dataSource.transaction(async (kept) => {
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
      await f.notes.write(1);
      await f.app.dataSource.transaction(async (kept) => {
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
      await f.app.dataSource
        .transaction(async (manager) => {
          await manager.insert(Note, { id: ticks });
          f.notes.outbox.emit(NoteWritten.of(ticks), { manager });
          late = (async () => {
            for (let i = 0; i < ticks; i++) await Promise.resolve();
            f.notes.outbox.emit(NoteWritten.of(1000 + ticks), { manager });
            await manager.insert(Note, { id: 1000 + ticks });
          })();
          late.catch(silence);
        })
        .catch(silence);
      await Promise.allSettled([late]);
    }
    const events = (await f.app.logged()).map((event) => (event as { id: number }).id).toSorted((a, b) => a - b);
    const rows = await f.notes.rows();
    // No row without its event. An event whose row was refused is the program's own: it swallowed that error.
    expect(rows.filter((id) => !events.includes(id))).toEqual([]);
  });

  it('is not ended by a query runner of its own that is released or disposed of', async () => {
    await expect(
      run(async () => {
        const queryRunner = f.app.dataSource.createQueryRunner();
        await f.notes.write(1);
        await queryRunner.release();
        await queryRunner[Symbol.asyncDispose]();
        await f.notes.write(2);
        throw new Error('undo');
      }),
    ).rejects.toThrow('undo');
    await expectWritten();
  });
});
