import { randomUUID } from 'node:crypto';
import { IdempotentRunner, Outbox, TransactionRunner } from 'nestjs-transactional-outbox';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { DATABASES, SERVERS } from '../setup/databases';
import { Note, Notes, NoteWritten } from '../setup/notes';

/** A handler that waits to be told to go on. */
class Gate {
  private open!: () => void;
  private enter!: () => void;
  readonly entered = new Promise<void>((resolve) => {
    this.enter = resolve;
  });
  private readonly opened = new Promise<void>((resolve) => {
    this.open = resolve;
  });

  async pass(): Promise<void> {
    this.enter();
    await this.opened;
  }

  release(): void {
    this.open();
  }
}

async function start(database: (typeof DATABASES)[number]) {
  const app = await startApp(database, { entities: [Note], providers: [Notes], dataSource: { poolSize: 10 } });
  return { app, runner: app.app.get(IdempotentRunner), notes: app.app.get(Notes) };
}

describe.each(DATABASES)('a message for idempotent.run on %s', (database) => {
  let app: TestApp;
  let runner: IdempotentRunner;
  let notes: Notes;
  let id: string;
  let note = 0;

  beforeAll(async () => {
    ({ app, runner, notes } = await start(database));
  });
  afterAll(() => app?.close());
  beforeEach(() => {
    id = randomUUID();
    note++;
  });
  const write = (): Promise<void> => notes.write(note);
  const rows = async (): Promise<number> => (await notes.rows()).filter((row) => row === note).length;
  const events = async (): Promise<number> =>
    (await app.logged()).filter((event) => (event as NoteWritten).id === note).length;

  // I1, I4
  it('is handled once, with all its effects', async () => {
    expect(await runner.run('c', id, async () => (await write(), 'done'))).toEqual({ duplicate: false, result: 'done' });
    for (let i = 0; i < 3; i++) expect(await runner.run('c', id, write)).toEqual({ duplicate: true });
    expect([await rows(), await events()]).toEqual([1, 1]);
    expect(await runner.run('other', id, async () => 'its own')).toMatchObject({ duplicate: false });
  });

  it('leaves nothing behind when its handler fails', async () => {
    const failing = runner.run('c', id, async () => {
      await write();
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect([await rows(), await events()]).toEqual([0, 0]);
    expect(await runner.run('c', id, write)).toMatchObject({ duplicate: false });
    expect([await rows(), await events()]).toEqual([1, 1]);
  });

  it('is handled once however many copies come at once', async () => {
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => runner.run('c', id, write)));
    expect(outcomes.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    expect([await rows(), await events()]).toEqual([1, 1]);
  });

  it('goes with the transaction around it', async () => {
    const transactions = app.app.get(TransactionRunner);
    const undone = transactions.run(async () => {
      await runner.run('c', id, write);
      throw new Error('undo');
    });
    await expect(undone).rejects.toThrow('undo');
    expect(await runner.run('c', id, write)).toMatchObject({ duplicate: false });
  });

  it('is refused when its id or consumer does not fit', async () => {
    await expect(runner.run('c', 'x'.repeat(191), write)).rejects.toMatchObject({ code: 'OUTBOX_MESSAGE_ID_INVALID' });
    await expect(runner.run('c', '', write)).rejects.toMatchObject({ code: 'OUTBOX_MESSAGE_ID_INVALID' });
    await expect(runner.run('c'.repeat(101), id, write)).rejects.toMatchObject({ code: 'OUTBOX_OPTIONS_INVALID' });
  });
});

describe.each(SERVERS)('copies of a message side by side on %s', (database) => {
  let app: TestApp;
  let runner: IdempotentRunner;
  let notes: Notes;

  beforeAll(async () => {
    ({ app, runner, notes } = await start(database));
  });
  // A test that fails must not leave a handler behind that holds its connection.
  const gates: Gate[] = [];
  afterEach(() => gates.splice(0).forEach((door) => door.release()));
  afterAll(() => app?.close());

  function gate(): Gate {
    const door = new Gate();
    gates.push(door);
    return door;
  }
  const NEVER = (): Promise<void> => Promise.reject(new Error('must not run'));

  // E6
  it('wait for the first, and messages beside it do not', async () => {
    const [id, door] = [randomUUID(), gate()];
    const first = runner.run('c', id, () => door.pass());
    await door.entered;
    const copies = Promise.allSettled([runner.run('c', id, NEVER), runner.run('c', id, NEVER)]);
    for (let i = 0; i < 20; i++) expect(await runner.run('c', randomUUID(), async () => i)).toMatchObject({ result: i });
    door.release();
    await first;
    const skipped = { status: 'fulfilled', value: { duplicate: true } };
    expect(await copies).toEqual([skipped, skipped]);
  });

  // E6
  it('wait no longer than the database lets them, and are then delivered again', async () => {
    const [id, door] = [randomUUID(), gate()];
    const first = runner.run('c', id, () => door.pass());
    await door.entered;
    const limit = database === 'postgres' ? `SET LOCAL lock_timeout = '300ms'` : 'SET SESSION innodb_lock_wait_timeout = 1';
    const copy = app.app.get(TransactionRunner).run(async () => {
      await app.dataSource.query(limit);
      try {
        return await runner.run('c', id, NEVER);
      } finally {
        if (database !== 'postgres') await app.dataSource.query('SET SESSION innodb_lock_wait_timeout = DEFAULT');
      }
    });
    await expect(copy).rejects.toMatchObject({ code: 'OUTBOX_MESSAGE_IN_PROGRESS', retryable: true });
    door.release();
    expect(await first).toMatchObject({ duplicate: false });
    expect(await runner.run('c', id, NEVER)).toEqual({ duplicate: true });
  });

  it('take over when the first fails, one of them', async () => {
    for (let round = 0; round < 3; round++) {
      const [id, door, note] = [randomUUID(), gate(), 1000 + round];
      const first = runner.run('c', id, async () => {
        await door.pass();
        throw new Error('no');
      });
      await door.entered;
      const copies = Promise.allSettled(Array.from({ length: 6 }, () => runner.run('c', id, () => notes.write(note))));
      // Time for the copies to queue up at the lock; the outcome is the same without.
      await new Promise((resolve) => setTimeout(resolve, 50));
      door.release();
      await expect(first).rejects.toThrow('no');
      const outcomes = await copies;
      expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([]);
      expect(outcomes.filter((one) => one.status === 'fulfilled' && !one.value.duplicate)).toHaveLength(1);
      expect((await notes.rows()).filter((row) => row === note)).toHaveLength(1);
    }
  });

  it('fail at once where that is asked for, and the session is as before', async () => {
    const [id, door] = [randomUUID(), gate()];
    const first = runner.run('c', id, () => door.pass());
    await door.entered;
    const options = { concurrentCopies: 'fail' } as const;
    await expect(runner.run('c', id, NEVER, options)).rejects.toMatchObject({
      code: 'OUTBOX_MESSAGE_IN_PROGRESS',
      retryable: true,
    });
    door.release();
    await first;
    expect(await runner.run('c', id, NEVER, options)).toEqual({ duplicate: true });
    const setting =
      database === 'postgres'
        ? `SELECT current_setting('lock_timeout') = '0' AS usual`
        : 'SELECT @@SESSION.innodb_lock_wait_timeout = @@GLOBAL.innodb_lock_wait_timeout AS usual';
    const usual: boolean[] = [];
    await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        runner.run('c', randomUUID(), async () => {
          const [row] = (await app.dataSource.query(setting)) as { usual: unknown }[];
          usual.push(Boolean(Number(row?.usual)));
        }, i % 2 ? options : {}),
      ),
    );
    expect(usual).toEqual(Array.from({ length: 10 }, () => true));
  });

  it('need one connection each', async () => {
    const { app: small, runner: its } = await (async () => {
      const started = await startApp(database, { entities: [Note], providers: [Notes], dataSource: { poolSize: 2 } });
      return { app: started, runner: started.app.get(IdempotentRunner) };
    })();
    try {
      const its1 = small.app.get(Notes);
      const outbox = small.app.get(Outbox);
      const ids = Array.from({ length: 40 }, (_, i) => i);
      const deliveries = [...ids, ...ids].map((i) =>
        its.run('c', `m${i}`, async () => {
          await its1.repository.insert({ id: i });
          outbox.emit(NoteWritten.of(i));
        }),
      );
      await Promise.all(deliveries);
      expect(await its1.rows()).toEqual(ids);
      expect(await small.logged()).toHaveLength(ids.length);
    } finally {
      await small.close();
    }
  });
});
