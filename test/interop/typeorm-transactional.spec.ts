import { Injectable } from '@nestjs/common';
import {
  addTransactionalDataSource,
  deleteDataSourceByName,
  initializeTransactionalContext,
  Propagation,
  runOnTransactionCommit,
  runOnTransactionRollback,
  StorageDriver,
  Transactional,
} from 'typeorm-transactional';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Note, Notes, NoteWritten } from '../setup/notes';
import { type InteropApp, startInteropApp } from './app';

@Injectable()
class Desk {
  readonly seen: string[] = [];

  constructor(private readonly notes: Notes) {}

  @Transactional()
  async place(id: number, then: () => Promise<unknown> = async () => undefined): Promise<void> {
    runOnTransactionCommit(() => this.seen.push(`committed ${id}`));
    runOnTransactionRollback(() => this.seen.push(`rolled back ${id}`));
    await this.notes.write(id);
    await then();
  }

  @Transactional({ propagation: Propagation.NESTED })
  async part(id: number, then: () => Promise<unknown> = async () => undefined): Promise<void> {
    await this.notes.write(id);
    await then();
  }

  @Transactional({ propagation: Propagation.REQUIRES_NEW })
  async apart(id: number): Promise<void> {
    await this.notes.write(id);
  }
}

const fails = async (): Promise<never> => {
  throw new Error('no');
};

describe.each(['sqlite', 'mysql', 'postgres'] as const)('typeorm-transactional on %s', (database) => {
  let app: InteropApp;
  let desk: Desk;
  let notes: Notes;

  beforeAll(async () => {
    initializeTransactionalContext({ storageDriver: StorageDriver.AUTO });
    app = await startInteropApp(database, {
      dataSourceFactory: (dataSource) => addTransactionalDataSource(dataSource),
      // Inside their transaction this is its manager.
      ambientManager: (dataSource) => dataSource.manager,
      providers: [Desk],
    });
    desk = app.get(Desk);
    notes = app.get(Notes);
  });
  afterAll(async () => {
    deleteDataSourceByName('default');
    await app.close();
  });
  beforeEach(async () => {
    desk.seen.length = 0;
    for (const table of ['note', 'outbox_message', 'outbox_pending']) await app.dataSource.query(`DELETE FROM ${table}`);
  });

  it('writes events just before its commit', async () => {
    await desk.place(1, () => desk.place(2));
    expect(await app.written()).toEqual({ rows: [1, 2], events: [1, 2] });
    await vi.waitFor(() => expect(desk.seen).toContain('committed 1'));
  });

  it('loses them with its rollback', async () => {
    await expect(desk.place(1, fails)).rejects.toThrow('no');
    expect(await app.written()).toEqual({ rows: [], events: [] });
    await vi.waitFor(() => expect(desk.seen).toEqual(['rolled back 1']));
  });

  // Its NESTED is another transaction, on another connection.
  it('loses those of a nested part that fails', async () => {
    if (database === 'sqlite') return;
    await desk.place(1, async () => {
      await desk.part(2, fails).catch(() => undefined);
      await desk.part(3, () => desk.part(4, fails).catch(() => undefined));
    });
    expect(await app.written()).toEqual({ rows: [1, 3], events: [1, 3] });
  });

  it('is refused, and does not hang, where a nested part would need a second connection', async () => {
    if (database !== 'sqlite') return;
    await expect(desk.place(1, () => desk.part(2))).rejects.toMatchObject({ code: 'OUTBOX_SQLITE_NESTED_TRANSACTION' });
    await desk.place(3);
    expect(await app.written()).toEqual({ rows: [3], events: [3] });
  });

  it('loses those of a savepoint that was set before the first event', async () => {
    await app.dataSource.transaction(async (manager) => {
      await manager.insert(Note, { id: 1 });
      await manager
        .transaction(async (inner) => {
          notes.outbox.emit(NoteWritten.of(2), { manager: inner });
          await fails();
        })
        .catch(() => undefined);
      notes.outbox.emit(NoteWritten.of(1), { manager });
    });
    expect(await app.written()).toEqual({ rows: [1], events: [1] });
  });

  it('keeps those of a transaction of its own', async () => {
    if (database === 'sqlite') return;
    await expect(
      desk.place(1, async () => {
        await desk.apart(2);
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(await app.written()).toEqual({ rows: [2], events: [2] });
  });

  it('refuses an event outside', () => {
    expect(() => notes.outbox.emit(NoteWritten.of(1))).toThrow(expect.objectContaining({ code: 'OUTBOX_NO_TRANSACTION' }));
  });

  it('refuses to commit what an error has doomed', async () => {
    if (database !== 'postgres') return;
    await expect(
      desk.place(1, () => notes.repository.insert({ id: 1 }).catch(() => undefined)),
    ).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_DOOMED' });
    expect(await app.written()).toEqual({ rows: [], events: [] });
  });

  it('goes beside transactions of the outbox itself', async () => {
    await notes.transactions.run(() => notes.write(1));
    await expect(notes.transactions.run(() => notes.write(2).then(fails))).rejects.toThrow('no');
    await desk.place(3);
    expect(await app.written()).toEqual({ rows: [1, 3], events: [1, 3] });
  });

  it('is part of a transaction of the outbox around it', async () => {
    await expect(notes.transactions.run(() => desk.place(1).then(fails))).rejects.toThrow('no');
    await notes.transactions.run(() => desk.place(2));
    expect(await app.written()).toEqual({ rows: [2], events: [2] });
  });

  it('keeps many at once apart', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 40 }, (_, id) => desk.place(id, id % 3 === 0 ? fails : undefined)),
    );
    const kept = outcomes.flatMap(({ status }, id) => (status === 'fulfilled' ? [id] : []));
    expect(kept).toHaveLength(26);
    expect(await app.written()).toEqual({ rows: kept, events: kept });
  });
});
