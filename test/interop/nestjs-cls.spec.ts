import { Injectable } from '@nestjs/common';
import { Propagation, Transactional, TransactionHost, ClsPluginTransactional } from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { ClsModule } from 'nestjs-cls';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Note, Notes, NoteWritten } from '../setup/notes';
import { type InteropApp, startInteropApp } from './app';

const fails = async (): Promise<never> => {
  throw new Error('no');
};
const nothing = async (): Promise<void> => undefined;

@Injectable()
class Desk {
  constructor(
    private readonly host: TransactionHost<TransactionalAdapterTypeOrm>,
    private readonly notes: Notes,
  ) {}

  @Transactional()
  async place(id: number, then: () => Promise<unknown> = nothing): Promise<void> {
    await this.write(id);
    await then();
  }

  @Transactional(Propagation.Nested)
  async part(id: number, then: () => Promise<unknown> = nothing): Promise<void> {
    await this.write(id);
    await then();
  }

  @Transactional(Propagation.RequiresNew)
  async apart(id: number): Promise<void> {
    await this.write(id);
  }

  private async write(id: number): Promise<void> {
    await this.host.tx.getRepository(Note).insert({ id });
    this.notes.outbox.emit(NoteWritten.of(id));
  }
}

describe.each(['sqlite', 'mysql', 'postgres'] as const)('@nestjs-cls/transactional on %s', (database) => {
  let app: InteropApp;
  let desk: Desk;
  let notes: Notes;

  beforeAll(async () => {
    app = await startInteropApp(database, {
      ambientManager: () => TransactionHost.getInstance<TransactionalAdapterTypeOrm>().tx,
      imports: [
        ClsModule.forRoot({
          global: true,
          plugins: [
            new ClsPluginTransactional({ adapter: new TransactionalAdapterTypeOrm({ dataSourceToken: DataSource }) }),
          ],
        }),
      ],
      providers: [Desk],
    });
    desk = app.get(Desk);
    notes = app.get(Notes);
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    for (const table of ['note', 'outbox_message', 'outbox_pending']) await app.dataSource.query(`DELETE FROM ${table}`);
  });

  it('writes events just before its commit', async () => {
    await desk.place(1, () => desk.place(2));
    expect(await app.written()).toEqual({ rows: [1, 2], events: [1, 2] });
  });

  it('loses them with its rollback', async () => {
    await expect(desk.place(1, fails)).rejects.toThrow('no');
    expect(await app.written()).toEqual({ rows: [], events: [] });
  });

  it('loses those of an undone savepoint', async () => {
    await desk.place(1, async () => {
      await desk.part(2, fails).catch(() => undefined);
      await desk.part(3, () => desk.part(4, fails).catch(() => undefined));
    });
    expect(await app.written()).toEqual({ rows: [1, 3], events: [1, 3] });
  });

  it('keeps those of a transaction of its own', async () => {
    if (database === 'sqlite') return;
    await expect(desk.place(1, () => desk.apart(2).then(fails))).rejects.toThrow('no');
    expect(await app.written()).toEqual({ rows: [2], events: [2] });
  });

  it('refuses an event outside', () => {
    expect(() => notes.outbox.emit(NoteWritten.of(1))).toThrow(expect.objectContaining({ code: 'OUTBOX_NO_TRANSACTION' }));
  });

  it('is part of a transaction of the outbox around it', async () => {
    await expect(notes.transactions.run(() => desk.place(1).then(fails))).rejects.toThrow('no');
    await notes.transactions.run(() => desk.place(2, () => desk.part(3, fails).catch(() => undefined)));
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
