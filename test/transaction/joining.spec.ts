import { Note, Notes, NoteWritten } from '../setup/notes';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DATABASES } from '../setup/databases';
import { startApp, type TestApp } from '../setup/app';

describe.each(DATABASES)('what joins a transaction on %s', (database) => {
  let app: TestApp;
  let notes: Notes;

  beforeAll(async () => {
    app = await startApp(database, { entities: [Note], providers: [Notes] });
    notes = app.app.get(Notes);
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    for (const table of ['note', 'outbox_message', 'outbox_pending']) await app.dataSource.query(`DELETE FROM ${table}`);
  });

  const insert = 'INSERT INTO note (id, text) VALUES (1, \'\')';
  const builtOutside = () => app.dataSource.createQueryBuilder().insert().into(Note).values({ id: 1 });

  const ways: Record<string, () => Promise<unknown>> = {
    'repository.save': () => notes.repository.save({ id: 1 }),
    'repository.insert': () => notes.repository.insert({ id: 1 }),
    'repository.upsert': () => notes.repository.upsert({ id: 1 }, ['id']),
    'repository.query': () => notes.repository.query(insert),
    'a query builder of the repository': () => notes.repository.createQueryBuilder().insert().values({ id: 1 }).execute(),
    'an extended repository': () =>
      notes.repository.extend({ put(this: typeof notes.repository) { return this.insert({ id: 1 }); } }).put(),
    'a repository looked up inside': () => app.dataSource.getRepository(Note).insert({ id: 1 }),
    'manager.save': () => app.dataSource.manager.save(Note, { id: 1 }),
    'manager.query': () => app.dataSource.manager.query(insert),
    'a query builder of the data source': () => app.dataSource.createQueryBuilder().insert().into(Note).values({ id: 1 }).execute(),
    'dataSource.query': () => app.dataSource.query(insert),
    'an active record': async () => Object.assign(new Note(), { id: 1, text: '' }).save(),
    'dataSource.transaction': () => app.dataSource.transaction((manager) => manager.insert(Note, { id: 1 })),
    'manager.transaction': () => app.dataSource.manager.transaction((manager) => manager.getRepository(Note).insert({ id: 1 })),
    'a query runner made by hand': async () => {
      const queryRunner = app.dataSource.createQueryRunner();
      await queryRunner.connect();
      await queryRunner.startTransaction();
      await queryRunner.manager.insert(Note, { id: 1 });
      await queryRunner.commitTransaction();
      await queryRunner.release();
    },
  };

  it.each(Object.keys(ways))('%s', async (way) => {
    const write = ways[way] ?? expect.unreachable();
    await expect(
      notes.transactions.run({}, async () => {
        await write();
        expect(await notes.rows()).toEqual([1]);
        throw new Error('undo');
      }),
    ).rejects.toThrow('undo');
    expect(await notes.rows()).toEqual([]);
    await notes.transactions.run({}, write);
    expect(await notes.rows()).toEqual([1]);
  });

  it('a query builder made outside and run inside', async () => {
    const builder = builtOutside();
    await expect(
      notes.transactions.run({}, async () => {
        await builder.execute();
        throw new Error('undo');
      }),
    ).rejects.toThrow('undo');
    expect(await notes.rows()).toEqual([]);
  });

  it('leaves work outside the transaction outside', async () => {
    let inside!: () => void;
    let goOn!: () => void;
    const isInside = new Promise<void>((resolve) => (inside = resolve));
    const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
    const transaction = notes.transactions.run({}, async () => {
      await notes.repository.insert({ id: 1 });
      inside();
      await mayGoOn;
      throw new Error('undo');
    });
    await isInside;
    // On SQLite this waits for the transaction, on the others it goes beside it.
    const outside = notes.repository.insert({ id: 2 });
    if (database !== 'sqlite') await outside;
    goOn();
    await expect(transaction).rejects.toThrow('undo');
    await outside;
    expect(await notes.rows()).toEqual([2]);
  });

  it('gives the data source back as it was when the app closes', async () => {
    const other = await startApp(database, { entities: [Note], providers: [Notes] });
    expect(Object.hasOwn(other.dataSource, 'createQueryRunner')).toBe(true);
    await other.close();
    expect(Object.hasOwn(other.dataSource.manager, 'transaction')).toBe(false);
  });

  describe('an explicit manager', () => {
    it('of dataSource.transaction carries events, and loses them with its rollback', async () => {
      await app.dataSource.transaction(async (manager) => {
        await manager.insert(Note, { id: 1 });
        notes.outbox.emit(NoteWritten.of(1), { manager });
      });
      await expect(
        app.dataSource.transaction(async (manager) => {
          await manager.insert(Note, { id: 2 });
          notes.outbox.emit(NoteWritten.of(2), { manager });
          throw new Error('undo');
        }),
      ).rejects.toThrow('undo');
      expect(await notes.rows()).toEqual([1]);
      expect(await app.logged()).toEqual([{ id: 1 }]);
    });

    it('of a query runner made by hand carries events, but for those of a savepoint that is undone', async () => {
      const queryRunner = app.dataSource.createQueryRunner();
      try {
        await queryRunner.startTransaction();
        await queryRunner.startTransaction();
        await queryRunner.manager.insert(Note, { id: 1 });
        // The outbox hears of this transaction only now, after the savepoint was set.
        notes.outbox.emit(NoteWritten.of(1), { manager: queryRunner.manager });
        await queryRunner.rollbackTransaction();
        await queryRunner.manager.insert(Note, { id: 2 });
        notes.outbox.emit(NoteWritten.of(2), { manager: queryRunner.manager });
        await queryRunner.commitTransaction();
        // The same query runner again: the next transaction is another one.
        await queryRunner.startTransaction();
        notes.outbox.emit(NoteWritten.of(3), { manager: queryRunner.manager });
        await queryRunner.rollbackTransaction();
      } finally {
        await queryRunner.release();
      }
      expect(await notes.rows()).toEqual([2]);
      expect(await app.logged()).toEqual([{ id: 2 }]);
    });

    it('outside a transaction is refused', async () => {
      expect(() => notes.outbox.emit(NoteWritten.of(1), { manager: app.dataSource.manager })).toThrow(
        expect.objectContaining({ code: 'OUTBOX_NO_TRANSACTION' }),
      );
    });
  });
});
