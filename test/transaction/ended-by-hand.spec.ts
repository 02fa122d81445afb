import { describe, expect, it } from 'vitest';
import { DATABASES } from '../setup/databases';
import { CLOSED, DOOMED, NotesFixture, silence } from './notes-fixture';

/** Places where an event or a row could slip out of its transaction. */
describe.each(DATABASES)('a transaction that is ended by hand on %s', (database) => {
  const f = NotesFixture.use(database);
  const { run, sql, expectWritten } = f;
  const isSqlite = database === 'sqlite';

  it.each(['ROLLBACK', isSqlite ? 'rollback transaction;' : 'rollback work'])('by %s is refused, and the next one works', async (command) => {
    await expect(
      run(async () => {
        await f.notes.write(1);
        await sql(command);
      }),
    ).rejects.toMatchObject(DOOMED);
    await run(() => f.notes.write(2));
    await expectWritten(2);
  });

  it('by COMMIT is committed, and takes nothing more', async () => {
    const hooks: string[] = [];
    let later: unknown;
    await run(async () => {
      f.notes.transactions.afterCommit(() => hooks.push('committed'));
      await f.notes.write(1);
      await sql('COMMIT');
      later = await f.notes.write(2).catch((error: unknown) => error);
    });
    expect(later).toMatchObject(CLOSED);
    expect(hooks).toEqual(['committed']);
    await run(() => f.notes.write(3));
    await expectWritten(1, 3);
  });

  it('by COMMIT AND CHAIN leaves no open transaction in the pool', async () => {
    if (isSqlite) return;
    await run(async () => {
      await f.notes.write(1);
      await sql('COMMIT AND CHAIN');
    });
    await run(() => f.notes.write(2));
    await expectWritten(1, 2);
  });

  it.each(isSqlite || database === 'postgres' ? ['END', 'end transaction'] : [])('by %s writes its events', async (command) => {
    await run(async () => {
      await f.notes.write(1);
      await sql(command);
    });
    await expectWritten(1);
  });

  it('by ABORT is refused', async () => {
    if (database !== 'postgres') return;
    await expect(
      run(async () => {
        await f.notes.write(1);
        await sql('ABORT');
      }),
    ).rejects.toMatchObject(DOOMED);
    await expectWritten();
  });

  it.each(['BEGIN', 'START TRANSACTION', '/* app */ begin'])('by %s, which commits on MySQL, is refused', async (command) => {
    if (isSqlite && /start/i.test(command)) return;
    await expect(
      run(async () => {
        await f.notes.write(1);
        await sql(command).catch(silence);
        await f.notes.write(2).catch(silence);
      }),
    ).rejects.toMatchObject(DOOMED);
    await expectWritten();
  });
});
