import { describe, expect, it } from 'vitest';
import { DATABASES } from '../setup/databases';
import { NoteWritten } from '../setup/notes';
import { DOOMED, NotesFixture, silence } from './notes-fixture';

/** Places where an event or a row could slip out of its transaction. */
describe.each(DATABASES)('a transaction with savepoints on %s', (database) => {
  const f = NotesFixture.use(database);
  const { run, nested, sql, fails, whileLocked, expectWritten } = f;
  const isMySql = database === 'mysql' || database === 'mariadb';

  it('knows them behind comments and in quotes', async () => {
    const quote = isMySql ? '`' : '"';
    await run(async () => {
      await f.notes.write(1);
      await sql('/* route=notes */ SAVEPOINT a');
      await f.notes.write(2);
      await sql(`-- another\n SAVEPOINT ${quote}my point${quote}`);
      await f.notes.write(3);
      await sql(`SAVEPOINT ${quote}my other${quote}`);
      await f.notes.write(4);
      await sql(`ROLLBACK TO SAVEPOINT ${quote}my point${quote}`);
      await f.notes.write(5);
      await sql('/* route=notes */ /* again */ ROLLBACK TO SAVEPOINT a');
      await f.notes.write(6);
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
      f.notes.outbox.emit(NoteWritten.of(1));
      const part = nested(async () => {
        await nested(fails).catch(silence);
        inside();
        await mayGoOn;
        throw new Error('undo');
      });
      await isInside;
      await expect(f.notes.repository.insert({ id: 1 })).rejects.toMatchObject({ code: 'OUTBOX_SAVEPOINT_CONFLICT' });
      goOn();
      await expect(part).rejects.toThrow('undo');
      await f.notes.repository.insert({ id: 1 });
    });
    await expectWritten(1);
  });

  it('is not mended by one that was set after the damage', async () => {
    if (!isMySql) return;
    await f.notes.repository.insert({ id: 100 });
    await whileLocked(100, () =>
      expect(
        run(async () => {
          await sql('SET SESSION innodb_lock_wait_timeout = 1');
          await nested(async () => {
            await f.notes.write(1);
            await f.notes.repository.update({ id: 100 }, { text: 'x' }).catch(silence);
          });
          await nested(fails).catch(silence);
        }),
      ).rejects.toMatchObject(DOOMED),
    );
    expect(await f.notes.rows()).toEqual([100]);
  });

  it('keeps what was sent before one beside it was undone', async () => {
    for (let id = 1; id <= 10; id++) {
      await run(() => {
        f.notes.outbox.emit(NoteWritten.of(id));
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
          await f.notes.write(ticks);
          await Promise.all([nested(fails), later()]);
        }).catch(silence);
        await f.notes.write(1000 + ticks);
      }).catch(silence);
    }
    const rows = await f.notes.rows();
    await expectWritten(...rows);
    expect(rows.filter((id) => id < 1000)).toEqual([]);
  });

  it('one right after another, in parallel, are either kept or refused for what they are', async () => {
    for (let ticks = 0; ticks < 60; ticks++) {
      const later = async (): Promise<void> => {
        for (let i = 0; i < ticks; i++) await Promise.resolve();
        await nested(() => f.notes.write(1000 + ticks));
      };
      const [first, second] = await run(() => Promise.allSettled([nested(() => f.notes.write(ticks)), later()]));
      expect(first).toMatchObject({ status: 'fulfilled' });
      if (second?.status === 'rejected') expect(second.reason).toMatchObject({ code: 'OUTBOX_SAVEPOINT_CONFLICT' });
    }
    await expectWritten(...(await f.notes.rows()));
  });

  it.each(['commits', 'fails'])('left open by work that nobody waits for, when it %s, do not spoil the next transaction', async (end) => {
    for (let ticks = 0; ticks < 60; ticks++) {
      let late: Promise<unknown> | undefined;
      await run(async () => {
        await f.notes.write(ticks);
        late = nested(() => f.notes.write(1000 + ticks));
        late.catch(silence);
        for (let i = 0; i < ticks; i++) await Promise.resolve();
        if (end === 'fails') throw new Error('undo');
      }).catch(silence);
      await Promise.allSettled([late]);
      await run(() => f.notes.write(2000 + ticks));
    }
    const rows = await f.notes.rows();
    await expectWritten(...rows);
    expect(rows.filter((id) => id >= 2000)).toHaveLength(60);
    if (end === 'fails') expect(rows).toHaveLength(60);
  });
});
