import { describe, expect, it } from 'vitest';
import { DATABASES } from '../setup/databases';
import { NoteWritten } from '../setup/notes';
import { NotesFixture } from './notes-fixture';

const sleep = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

describe.each(DATABASES)('events of work in parallel on %s', (database) => {
  const f = NotesFixture.use(database);
  const { run, nested, expectWritten } = f;
  const failing = (error: Error, work: () => Promise<unknown> = async () => undefined) => async (): Promise<never> => {
    await work();
    throw error;
  };

  describe('work in parallel', () => {
    it('is part of the transaction', async () => {
      await run(async () => {
        await Promise.all([1, 2, 3, 4, 5].map((id) => f.notes.write(id)));
      });
      await expectWritten(1, 2, 3, 4, 5);
    });

    // C1
    it('that goes on after a failure cannot write any more', async () => {
      const late: Promise<unknown>[] = [];
      await expect(
        run(async () => {
          late.push(sleep(30).then(() => f.notes.write(3)));
          await Promise.all([f.notes.write(1), failing(new Error('no'))(), late[0]]);
        }),
      ).rejects.toThrow('no');
      const [outcome] = await Promise.allSettled(late);
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'OUTBOX_TRANSACTION_CLOSED' } });
      await expectWritten();
    });

    it('that outlives the commit is refused, not written elsewhere', async () => {
      let late: Promise<unknown> = Promise.resolve();
      await run(async () => {
        await f.notes.write(1);
        late = sleep(30).then(() => f.notes.write(2));
        late.catch(() => undefined);
      });
      await expect(late).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_CLOSED' });
      await expectWritten(1);
    });

    it('beside a savepoint is refused, since it could be undone with it', async () => {
      const outcomes = await run(() =>
        Promise.allSettled([
          nested(async () => {
            await f.notes.write(1);
            await sleep(20);
            throw new Error('part');
          }),
          sleep(10).then(() => f.notes.write(2)),
          sleep(10).then(() => nested(() => f.notes.write(3))),
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
        Promise.allSettled([nested(() => f.notes.write(1)), nested(() => f.notes.write(2))]),
      );
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
      await expectWritten(1);
    });

    it('that a failed savepoint left running cannot write into the outer transaction', async () => {
      let late: Promise<unknown> = Promise.resolve();
      await run(async () => {
        await nested(async () => {
          late = sleep(20).then(() => f.notes.write(1));
          late.catch(() => undefined);
          throw new Error('part');
        }).catch(() => undefined);
        await sleep(40);
        await f.notes.write(2);
      });
      await expect(late).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_CLOSED' });
      await expectWritten(2);
    });
  });

  describe('a method that is not awaited', () => {
    const bare = (id: number, pause = 0): Promise<void> =>
      run(async () => {
        await f.notes.repository.insert({ id });
        await sleep(pause);
        f.notes.outbox.emit(NoteWritten.of(id));
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
        await f.notes.write(1);
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
