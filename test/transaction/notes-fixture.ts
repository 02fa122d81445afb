import { type EntityManager, type EntitySubscriberInterface, EventSubscriber, type TransactionCommitEvent } from 'typeorm';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import type { DatabaseName } from '../setup/databases';
import { Note, Notes } from '../setup/notes';

export const silence = (): void => undefined;
export const CLOSED = { code: 'OUTBOX_TRANSACTION_CLOSED' };
export const DOOMED = { code: 'OUTBOX_TRANSACTION_DOOMED' };

/** What the app's subscriber does at its next call; a test sets it. */
export const listen: {
  beforeCommit?: (manager: EntityManager) => Promise<unknown> | void;
  afterCommit?: () => Promise<unknown> | void;
  afterQuery?: (query: string) => void;
} = {};

@EventSubscriber()
class Listener implements EntitySubscriberInterface {
  beforeTransactionCommit({ manager }: TransactionCommitEvent): Promise<unknown> | void {
    const listener = listen.beforeCommit;
    delete listen.beforeCommit;
    return listener?.(manager);
  }

  afterTransactionCommit(): Promise<unknown> | void {
    const listener = listen.afterCommit;
    delete listen.afterCommit;
    return listener?.();
  }

  afterQuery({ query }: { query: string }): void {
    listen.afterQuery?.(query);
  }
}

/** An app with notes for the tests of one file, and what they do to it. */
export class NotesFixture {
  app!: TestApp;
  notes!: Notes;

  /** Registers the hooks that start it, clear it before each test, and end it. */
  static use(database: DatabaseName): NotesFixture {
    const f = new NotesFixture();
    beforeAll(async () => {
      f.app = await startApp(database, {
        entities: [Note],
        providers: [Notes],
        dataSource: { poolSize: 5, subscribers: [Listener], cache: true },
      });
      f.notes = f.app.app.get(Notes);
    });
    afterAll(() => f.app.close());
    beforeEach(async () => {
      for (const name of Object.keys(listen)) Reflect.deleteProperty(listen, name);
      for (const table of ['note', 'outbox_message', 'outbox_pending']) await f.app.dataSource.query(`DELETE FROM ${table}`);
    });
    return f;
  }

  run = <T>(work: () => Promise<T>): Promise<T> => this.notes.transactions.run(work);
  nested = <T>(work: () => Promise<T>): Promise<T> => this.notes.transactions.run({ propagation: 'NESTED' }, work);
  sql = (text: string): Promise<unknown> => this.app.dataSource.query(text);
  fails = async (): Promise<never> => {
    throw new Error('part');
  };
  whileLocked = async (id: number, work: () => Promise<void>): Promise<void> => {
    const holder = this.app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query(`UPDATE note SET text = 'held' WHERE id = ${id}`);
    try {
      await work();
    } finally {
      await holder.rollbackTransaction();
      await holder.release();
    }
  };
  /** Rows and events must tell the same story. */
  expectWritten = async (...ids: number[]): Promise<void> => {
    expect(await this.notes.rows()).toEqual(ids);
    expect((await this.app.logged()).map((event) => (event as { id: number }).id).toSorted((a, b) => a - b)).toEqual(ids);
    const pending = (await this.app.dataSource.query('SELECT COUNT(*) AS n FROM outbox_pending')) as { n: number | string }[];
    expect(Number(pending[0]?.n)).toBe(ids.length);
  };
}
