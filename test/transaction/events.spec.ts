import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { DATABASES } from '../setup/databases';
import { Note, Notes, NoteWritten } from '../setup/notes';

const sleep = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

describe.each(DATABASES)('events of a transaction on %s', (database) => {
  let app: TestApp;
  let notes: Notes;

  beforeAll(async () => {
    app = await startApp(database, { entities: [Note], providers: [Notes], dataSource: { poolSize: 5 } });
    notes = app.app.get(Notes);
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    for (const table of ['note', 'outbox_message', 'outbox_pending']) await app.dataSource.query(`DELETE FROM ${table}`);
  });

  /** Rows and events must tell the same story. */
  async function expectWritten(...ids: number[]): Promise<void> {
    expect(await notes.rows()).toEqual(ids);
    expect((await app.logged()).map((payload) => (payload as { id: number }).id).toSorted((a, b) => a - b)).toEqual(ids);
    const pending = (await app.dataSource.query('SELECT COUNT(*) AS n FROM outbox_pending')) as { n: number | string }[];
    expect(Number(pending[0]?.n)).toBe(ids.length);
  }
  const run = <T>(work: () => Promise<T>): Promise<T> => notes.transactions.run({}, work);
  const nested = <T>(work: () => Promise<T>): Promise<T> => notes.transactions.run({ propagation: 'NESTED' }, work);
  const failing = (error: Error, work: () => Promise<unknown> = async () => undefined) => async (): Promise<never> => {
    await work();
    throw error;
  };

  it('commit with its rows', async () => {
    await run(async () => {
      await notes.write(1);
      await notes.write(2);
    });
    await expectWritten(1, 2);
  });

  it('are gone when it fails', async () => {
    await expect(run(failing(new Error('no'), () => notes.write(1)))).rejects.toThrow('no');
    await expectWritten();
  });

  it('cannot be emitted outside of one', () => {
    expect(() => notes.outbox.emit(NoteWritten.of(1))).toThrow(expect.objectContaining({ code: 'OUTBOX_NO_TRANSACTION' }));
  });

  it('undo it when they are invalid, naming the field', async () => {
    await expect(
      run(async () => {
        await notes.write(1);
        notes.outbox.emit(Object.assign(new NoteWritten(), { id: 'x' }));
      }),
    ).rejects.toMatchObject({ code: 'OUTBOX_EVENT_INVALID', fields: { id: expect.any(Array) as unknown } });
    await expectWritten();
  });

  it('undo it when they cannot be written: they are written before the commit, not after', async () => {
    await app.dataSource.query('ALTER TABLE outbox_pending RENAME TO hidden');
    try {
      await expect(run(() => notes.write(1))).rejects.toMatchObject({ name: 'QueryFailedError' });
    } finally {
      await app.dataSource.query('ALTER TABLE hidden RENAME TO outbox_pending');
    }
    await expectWritten();
  });

  // D7
  it('that are too large for the server undo it, and the next is fine', async () => {
    if (database !== 'mysql' && database !== 'mariadb') return;
    await expect(
      run(async () => {
        await notes.write(1);
        // One message beyond max_allowed_packet; maxMessageBytes would refuse it long before.
        await notes.dataSource.query('INSERT INTO note (id, text) VALUES (2, ?)', ['x'.repeat(70 * 1024 * 1024)]);
      }),
    ).rejects.toThrow();
    await expectWritten();
    await run(() => notes.write(3));
    await expectWritten(3);
  });

  // C3
  it('of a savepoint follow its outcome and that of the whole', async () => {
    await run(async () => {
      await notes.write(1);
      await nested(failing(new Error('part'), () => notes.write(2))).catch(() => undefined);
      await nested(() => notes.write(3));
      await nested(async () => {
        await notes.write(4);
        await nested(failing(new Error('part'), () => notes.write(5))).catch(() => undefined);
      });
    });
    await expectWritten(1, 3, 4);
    await expect(
      run(async () => {
        await nested(() => notes.write(6));
        throw new Error('whole');
      }),
    ).rejects.toThrow('whole');
    await expectWritten(1, 3, 4);
  });

  it('of a savepoint that is undone by hand are undone', async () => {
    await run(async () => {
      await notes.write(1);
      await app.dataSource.query('SAVEPOINT mine');
      await notes.write(2);
      await app.dataSource.query('SAVEPOINT Inner_one');
      await notes.write(3);
      await app.dataSource.query('ROLLBACK TO SAVEPOINT mine');
      await notes.write(4);
      await app.dataSource.query('RELEASE SAVEPOINT mine');
      await notes.write(5);
    });
    await expectWritten(1, 4, 5);
  });

  it('of a transaction that was ended behind our back are not written', async () => {
    if (database === 'mysql' || database === 'mariadb') return;
    const multi = database === 'postgres' ? 'SELECT 1; ROLLBACK' : ';ROLLBACK';
    await expect(
      run(async () => {
        await notes.write(1);
        await app.dataSource.query(multi);
      }),
    ).rejects.toMatchObject({ code: expect.stringMatching(/OUTBOX_TRANSACTION_/) as unknown });
    await app.dataSource
      .transaction(async (manager) => {
        await manager.insert(Note, { id: 2 });
        await manager.query('ROLLBACK');
        expect(() => notes.outbox.emit(NoteWritten.of(2), { manager })).toThrow(
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
        notes.transactions.afterCommit(async () => {
          // Outside: this write is its own, and sees the row as others do.
          await notes.repository.insert({ id: 9 });
          seen.push(await notes.rows());
        });
        notes.transactions.afterCommit(() => {
          throw new Error('hook');
        });
        notes.transactions.afterCommit(() => seen.push('last'));
        notes.transactions.afterRollback(() => seen.push('never'));
        await notes.write(1);
      });
      expect(seen).toEqual([[1, 9], 'last']);
      await expect(
        run(async () => {
          notes.transactions.afterCommit(() => seen.push('never'));
          notes.transactions.afterRollback(() => seen.push('rolled back'));
          throw new Error('no');
        }),
      ).rejects.toThrow('no');
      expect(seen).toEqual([[1, 9], 'last', 'rolled back']);
    });

    it('of an undone savepoint do not run', async () => {
      const seen: string[] = [];
      await run(async () => {
        await nested(async () => {
          notes.transactions.afterCommit(() => seen.push('part'));
          throw new Error('part');
        }).catch(() => undefined);
        notes.transactions.afterCommit(() => seen.push('whole'));
      });
      expect(seen).toEqual(['whole']);
    });
  });

  // C10
  it('keep to their own request when the pool is busy', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 200 }, (_, id) =>
        run(async () => {
          await notes.write(id);
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
