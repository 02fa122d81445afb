import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { DATABASES } from '../setup/databases';
import { Note, Notes, NoteWritten } from '../setup/notes';

const sleep = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

describe.each(DATABASES)('events of work in parallel on %s', (database) => {
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

  describe('work in parallel', () => {
    it('is part of the transaction', async () => {
      await run(async () => {
        await Promise.all([1, 2, 3, 4, 5].map((id) => notes.write(id)));
      });
      await expectWritten(1, 2, 3, 4, 5);
    });

    // C1
    it('that goes on after a failure cannot write any more', async () => {
      const late: Promise<unknown>[] = [];
      await expect(
        run(async () => {
          late.push(sleep(30).then(() => notes.write(3)));
          await Promise.all([notes.write(1), failing(new Error('no'))(), late[0]]);
        }),
      ).rejects.toThrow('no');
      const [outcome] = await Promise.allSettled(late);
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'OUTBOX_TRANSACTION_CLOSED' } });
      await expectWritten();
    });

    it('that outlives the commit is refused, not written elsewhere', async () => {
      let late: Promise<unknown> = Promise.resolve();
      await run(async () => {
        await notes.write(1);
        late = sleep(30).then(() => notes.write(2));
        late.catch(() => undefined);
      });
      await expect(late).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_CLOSED' });
      await expectWritten(1);
    });

    it('beside a savepoint is refused, since it could be undone with it', async () => {
      const outcomes = await run(() =>
        Promise.allSettled([
          nested(async () => {
            await notes.write(1);
            await sleep(20);
            throw new Error('part');
          }),
          sleep(10).then(() => notes.write(2)),
          sleep(10).then(() => nested(() => notes.write(3))),
        ]),
      );
      expect(outcomes.slice(1)).toEqual([
        expect.objectContaining({ reason: expect.objectContaining({ code: 'OUTBOX_SAVEPOINT_CONFLICT' }) as unknown }),
        expect.objectContaining({ reason: expect.objectContaining({ code: 'OUTBOX_SAVEPOINT_CONFLICT' }) as unknown }),
      ]);
      await expectWritten();
    });

    it('of two savepoints begun in the same moment is refused too', async () => {
      const outcomes = await run(() =>
        Promise.allSettled([nested(() => notes.write(1)), nested(() => notes.write(2))]),
      );
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
      await expectWritten(1);
    });

    it('that a failed savepoint left running cannot write into the outer transaction', async () => {
      let late: Promise<unknown> = Promise.resolve();
      await run(async () => {
        await nested(async () => {
          late = sleep(20).then(() => notes.write(1));
          late.catch(() => undefined);
          throw new Error('part');
        }).catch(() => undefined);
        await sleep(40);
        await notes.write(2);
      });
      await expect(late).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_CLOSED' });
      await expectWritten(2);
    });
  });

  describe('a method that is not awaited', () => {
    const bare = (id: number, pause = 0): Promise<void> =>
      run(async () => {
        await notes.repository.insert({ id });
        await sleep(pause);
        notes.outbox.emit(NoteWritten.of(id));
      });
    const silently = (promise: Promise<unknown>): Promise<void> => promise.then(() => undefined, () => undefined);

    it('undoes the transaction that ends before it', async () => {
      const left: Promise<void>[] = [];
      await expect(
        run(async () => {
          [1, 2, 3].forEach((id) => left.push(silently(bare(id))));
        }),
      ).rejects.toMatchObject({ code: 'OUTBOX_WORK_NOT_AWAITED' });
      await Promise.all(left);
      await expectWritten();
    });

    it('undoes it also when another one was', async () => {
      const left: Promise<void>[] = [];
      await expect(
        run(async () => {
          const [one, two] = [bare(1), bare(2, 50)];
          left.push(silently(one), silently(two));
          await Promise.race([one, two]);
        }),
      ).rejects.toMatchObject({ code: 'OUTBOX_WORK_NOT_AWAITED' });
      await Promise.all(left);
      await expectWritten();
    });

    it('undoes the savepoint that ends before it', async () => {
      const left: Promise<void>[] = [];
      await run(async () => {
        await notes.write(1);
        await expect(
          nested(async () => {
            left.push(silently(bare(2)));
          }),
        ).rejects.toMatchObject({ code: 'OUTBOX_WORK_NOT_AWAITED' });
      });
      await Promise.all(left);
      await expectWritten(1);
    });
  });
});
