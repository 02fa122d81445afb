import { describe, expect, it } from 'vitest';
import { DATABASES } from '../setup/databases';
import { Note } from '../setup/notes';
import { DOOMED, NotesFixture, silence } from './notes-fixture';

/** Places where an event or a row could slip out of its transaction. */
describe.each(DATABASES)('a transaction on %s', (database) => {
  const f = NotesFixture.use(database);
  const { run, sql, whileLocked, expectWritten } = f;
  const isMySql = database === 'mysql' || database === 'mariadb';
  const isSqlite = database === 'sqlite';

  it('knows of an error in a stream', async () => {
    if (!isMySql) return;
    await f.notes.repository.insert({ id: 100 });
    await whileLocked(100, () =>
      expect(
        run(async () => {
          await f.notes.write(1);
          await sql('SET SESSION innodb_lock_wait_timeout = 1');
          const stream = await f.app.dataSource.createQueryRunner().stream('SELECT * FROM note WHERE id = 100 FOR UPDATE');
          await new Promise((resolve) => stream.on('error', resolve).resume());
          await f.notes.write(2);
        }),
      ).rejects.toMatchObject({ ...DOOMED, cause: { code: 'ER_LOCK_WAIT_TIMEOUT' } }),
    );
    expect(await f.notes.rows()).toEqual([100]);
  });

  it('gives its own query results to the cache, and takes them back', async () => {
    const find = (): Promise<Note[]> => f.notes.repository.find({ cache: { id: 'all', milliseconds: 60_000 } });
    await expect(
      run(async () => {
        await f.notes.write(1);
        expect(await find()).toHaveLength(1);
        throw new Error('undo');
      }),
    ).rejects.toThrow('undo');
    expect(await find()).toEqual([]);
    await f.app.dataSource.queryResultCache?.clear();
  });

  it('that could not begin keeps no other waiting', async () => {
    if (!isSqlite) return;
    const queryRunner = f.app.dataSource.createQueryRunner();
    await queryRunner.query('BEGIN');
    // On SQLite a transaction inside another is an error.
    await queryRunner.startTransaction().catch(silence);
    await queryRunner.release();
    await sql('ROLLBACK').catch(silence);
    await run(() => f.notes.write(1));
    await expectWritten(1);
  });

  it('that the database undid is lost as a whole', async () => {
    if (!isSqlite) return;
    await f.notes.repository.insert({ id: 100 });
    await expect(
      run(async () => {
        await f.notes.write(1);
        await sql("INSERT OR ROLLBACK INTO note (id, text) VALUES (100, '')").catch(silence);
        await f.notes.write(2);
      }),
    ).rejects.toMatchObject(DOOMED);
    expect(await f.notes.rows()).toEqual([100]);
    expect(await f.app.logged()).toEqual([]);
  });

  it('that saw another snapshot is lost as a whole on MariaDB', async () => {
    if (database !== 'mariadb') return;
    await f.notes.repository.insert({ id: 100 });
    await expect(
      run(async () => {
        await sql('SET SESSION innodb_snapshot_isolation = ON');
        await f.notes.write(1);
        await f.notes.repository.find();
        await f.notes.transactions.run({ propagation: 'NOT_SUPPORTED' }, () => f.notes.repository.update(100, { text: 'other' }));
        await expect(f.notes.repository.update(100, { text: 'mine' })).rejects.toMatchObject({ code: 'ER_CHECKREAD' });
        await f.notes.repository.insert({ id: 2 }).catch(silence);
      }),
    ).rejects.toMatchObject(DOOMED);
    expect(await f.notes.rows()).toEqual([100]);
  });

  it('that a procedure has committed is lost as a whole, as far as it is not yet', async () => {
    if (!isMySql) return;
    await sql('CREATE PROCEDURE commits() BEGIN SELECT 1; COMMIT; END');
    await expect(
      run(async () => {
        await f.notes.write(1);
        await sql('CALL commits()');
        await f.notes.write(2).catch(silence);
      }),
    ).rejects.toMatchObject(DOOMED);
    expect(await f.notes.rows()).toEqual([1]);
    expect(await f.app.logged()).toEqual([]);
  });

  it('waits for no other on one connection', async () => {
    if (!isSqlite) return;
    // On the other databases this goes over a second connection.
    const outcome = f.app.dataSource.transaction(async (manager) => {
      await manager.insert(Note, { id: 1 });
      await f.notes.repository.find();
    });
    await expect(outcome).rejects.toMatchObject({ code: 'OUTBOX_SQLITE_NESTED_TRANSACTION' });
    await expectWritten();
  });
});
