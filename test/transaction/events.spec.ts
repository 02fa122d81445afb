import { describe, expect, it } from 'vitest';
import { DATABASES } from '../setup/databases';
import { Note, NoteWritten } from '../setup/notes';
import { NotesFixture } from './notes-fixture';

const sleep = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

describe.each(DATABASES)('events of a transaction on %s', (database) => {
  const f = NotesFixture.use(database);
  const { run, nested, expectWritten } = f;
  const failing = (error: Error, work: () => Promise<unknown> = async () => undefined) => async (): Promise<never> => {
    await work();
    throw error;
  };

  it('commit with its rows', async () => {
    await run(async () => {
      await f.notes.write(1);
      await f.notes.write(2);
    });
    await expectWritten(1, 2);
  });

  it('are gone when it fails', async () => {
    await expect(run(failing(new Error('no'), () => f.notes.write(1)))).rejects.toThrow('no');
    await expectWritten();
  });

  it('cannot be emitted outside of one', () => {
    expect(() => f.notes.outbox.emit(NoteWritten.of(1))).toThrow(expect.objectContaining({ code: 'OUTBOX_NO_TRANSACTION' }));
  });

  it('undo it when they are invalid, naming the field', async () => {
    await expect(
      run(async () => {
        await f.notes.write(1);
        f.notes.outbox.emit(Object.assign(new NoteWritten(), { id: 'x' }));
      }),
    ).rejects.toMatchObject({ code: 'OUTBOX_EVENT_INVALID', fields: { id: expect.any(Array) as unknown } });
    await expectWritten();
  });

  it('undo it when they cannot be written: they are written before the commit, not after', async () => {
    await f.app.dataSource.query('ALTER TABLE outbox_pending RENAME TO hidden');
    try {
      await expect(run(() => f.notes.write(1))).rejects.toMatchObject({ name: 'QueryFailedError' });
    } finally {
      await f.app.dataSource.query('ALTER TABLE hidden RENAME TO outbox_pending');
    }
    await expectWritten();
  });

  // D7
  it('that are too large for the server undo it, and the next is fine', async () => {
    if (database !== 'mysql' && database !== 'mariadb') return;
    await expect(
      run(async () => {
        await f.notes.write(1);
        // One message beyond max_allowed_packet; maxMessageBytes would refuse it long before.
        await f.notes.dataSource.query('INSERT INTO note (id, text) VALUES (2, ?)', ['x'.repeat(70 * 1024 * 1024)]);
      }),
    ).rejects.toThrow();
    await expectWritten();
    await run(() => f.notes.write(3));
    await expectWritten(3);
  });

  // C3
  it('of a savepoint follow its outcome and that of the whole', async () => {
    await run(async () => {
      await f.notes.write(1);
      await nested(failing(new Error('part'), () => f.notes.write(2))).catch(() => undefined);
      await nested(() => f.notes.write(3));
      await nested(async () => {
        await f.notes.write(4);
        await nested(failing(new Error('part'), () => f.notes.write(5))).catch(() => undefined);
      });
    });
    await expectWritten(1, 3, 4);
    await expect(
      run(async () => {
        await nested(() => f.notes.write(6));
        throw new Error('whole');
      }),
    ).rejects.toThrow('whole');
    await expectWritten(1, 3, 4);
  });

  it('of a savepoint that is undone by hand are undone', async () => {
    await run(async () => {
      await f.notes.write(1);
      await f.app.dataSource.query('SAVEPOINT mine');
      await f.notes.write(2);
      await f.app.dataSource.query('SAVEPOINT Inner_one');
      await f.notes.write(3);
      await f.app.dataSource.query('ROLLBACK TO SAVEPOINT mine');
      await f.notes.write(4);
      await f.app.dataSource.query('RELEASE SAVEPOINT mine');
      await f.notes.write(5);
    });
    await expectWritten(1, 4, 5);
  });

  it('of a transaction that was ended behind our back are not written', async () => {
    if (database === 'mysql' || database === 'mariadb') return;
    const multi = database === 'postgres' ? 'SELECT 1; ROLLBACK' : ';ROLLBACK';
    await expect(
      run(async () => {
        await f.notes.write(1);
        await f.app.dataSource.query(multi);
      }),
    ).rejects.toMatchObject({ code: expect.stringMatching(/OUTBOX_TRANSACTION_/) as unknown });
    await f.app.dataSource
      .transaction(async (manager) => {
        await manager.insert(Note, { id: 2 });
        await manager.query('ROLLBACK');
        expect(() => f.notes.outbox.emit(NoteWritten.of(2), { manager })).toThrow(
          expect.objectContaining({ code: 'OUTBOX_NO_TRANSACTION' }),
        );
      })
      .catch(() => undefined);
    await expectWritten();
  });

  describe('hooks', () => {
    it('run after the outcome, outside, and cannot change it', async () => {
      const seen: unknown[] = [];
      await run(async () => {
        f.notes.transactions.afterCommit(async () => {
          // Outside: this write is its own, and sees the row as others do.
          await f.notes.repository.insert({ id: 9 });
          seen.push(await f.notes.rows());
        });
        f.notes.transactions.afterCommit(() => {
          throw new Error('hook');
        });
        f.notes.transactions.afterCommit(() => seen.push('last'));
        f.notes.transactions.afterRollback(() => seen.push('never'));
        await f.notes.write(1);
      });
      expect(seen).toEqual([[1, 9], 'last']);
      await expect(
        run(async () => {
          f.notes.transactions.afterCommit(() => seen.push('never'));
          f.notes.transactions.afterRollback(() => seen.push('rolled back'));
          throw new Error('no');
        }),
      ).rejects.toThrow('no');
      expect(seen).toEqual([[1, 9], 'last', 'rolled back']);
    });

    it('of an undone savepoint do not run', async () => {
      const seen: string[] = [];
      await run(async () => {
        await nested(async () => {
          f.notes.transactions.afterCommit(() => seen.push('part'));
          throw new Error('part');
        }).catch(() => undefined);
        f.notes.transactions.afterCommit(() => seen.push('whole'));
      });
      expect(seen).toEqual(['whole']);
    });
  });

  // C10
  it('keep to their own request when the pool is busy', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 200 }, (_, id) =>
        run(async () => {
          await f.notes.write(id);
          await sleep(Math.random() * 3);
          if (id % 10 < 3) throw new Error('no');
        }),
      ),
    );
    const kept = outcomes.flatMap(({ status }, id) => (status === 'fulfilled' ? [id] : []));
    expect(kept).toHaveLength(140);
    await expectWritten(...kept);
  });
});
