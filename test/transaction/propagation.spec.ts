import type { Propagation } from 'nestjs-transactional-outbox';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { DATABASES } from '../setup/databases';
import { Note, Notes } from '../setup/notes';

interface Expected {
  /** Code of the error that the inner call ends with by itself. */
  readonly error?: string;
  /** Whether the inner row survives: with its own success, by the outer outcome. */
  readonly kept: { readonly outerOk: boolean; readonly outerThrows: boolean };
  /** Whether a caught inner failure spoils the outer transaction. Joining does not: the code chose to go on. */
  readonly joins: boolean;
}

/** Inside an outer transaction. */
const INSIDE: Record<Propagation, Expected> = {
  REQUIRED: { kept: { outerOk: true, outerThrows: false }, joins: true },
  MANDATORY: { kept: { outerOk: true, outerThrows: false }, joins: true },
  SUPPORTS: { kept: { outerOk: true, outerThrows: false }, joins: true },
  NESTED: { kept: { outerOk: true, outerThrows: false }, joins: false },
  REQUIRES_NEW: { kept: { outerOk: true, outerThrows: true }, joins: false },
  // Without a transaction the row is written by itself, and an event cannot be emitted.
  NOT_SUPPORTED: { error: 'OUTBOX_NO_TRANSACTION', kept: { outerOk: false, outerThrows: false }, joins: false },
  NEVER: { error: 'OUTBOX_NO_TRANSACTION', kept: { outerOk: false, outerThrows: false }, joins: false },
};
const MODES = Object.keys(INSIDE) as Propagation[];

// C4: each mode × outer ok or throws × inner ok or throws.
describe.each(DATABASES)('propagation on %s', (database) => {
  let app: TestApp;
  let notes: Notes;
  const OUTER = 1;
  const INNER = 2;

  beforeAll(async () => {
    app = await startApp(database, { entities: [Note], providers: [Notes] });
    notes = app.app.get(Notes);
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    for (const table of ['note', 'outbox_message', 'outbox_pending']) await app.dataSource.query(`DELETE FROM ${table}`);
  });

  const events = async (): Promise<number[]> =>
    (await app.logged()).map((event) => (event as { id: number }).id).toSorted((a, b) => a - b);
  /** Emits first, so that without a transaction nothing is written. */
  const write = async (id: number): Promise<void> => {
    notes.transactions.afterCommit(() => undefined);
    await notes.write(id);
  };

  for (const mode of MODES) {
    for (const outerOk of [true, false]) {
      for (const innerOk of [true, false]) {
        it(`${mode} inside: outer ${outerOk ? 'ok' : 'throws'}, inner ${innerOk ? 'ok' : 'throws'}`, async () => {
          const refusedBySqlite = database === 'sqlite' && (mode === 'REQUIRES_NEW' || mode === 'NOT_SUPPORTED');
          const expected = INSIDE[mode];
          let inner: unknown;
          const outer = notes.transactions.run(async () => {
            await write(OUTER);
            inner = await notes.transactions
              .run({ propagation: mode }, async () => {
                await write(INNER);
                if (!innerOk) throw new Error('inner');
              })
              .catch((error: unknown) => error);
            if (!outerOk) throw new Error('outer');
          });
          if (outerOk) await outer;
          else await expect(outer).rejects.toThrow('outer');

          if (refusedBySqlite) expect(inner).toMatchObject({ code: 'OUTBOX_SQLITE_NESTED_TRANSACTION' });
          else if (expected.error) expect(inner).toMatchObject({ code: expected.error });
          else if (!innerOk) expect(inner).toMatchObject({ message: 'inner' });
          else expect(inner).toBeUndefined();

          const innerSurvives =
            !refusedBySqlite &&
            expected.error === undefined &&
            (outerOk ? expected.kept.outerOk : expected.kept.outerThrows) &&
            (innerOk || expected.joins);
          const survivors = [...(outerOk ? [OUTER] : []), ...(innerSurvives ? [INNER] : [])];
          expect(await notes.rows()).toEqual(survivors);
          expect(await events()).toEqual(survivors);
        });
      }
    }

    it(`${mode} without an outer transaction`, async () => {
      const ran = notes.transactions.run({ propagation: mode }, () => write(INNER));
      if (mode === 'MANDATORY' || mode === 'SUPPORTS' || mode === 'NOT_SUPPORTED' || mode === 'NEVER') {
        await expect(ran).rejects.toMatchObject({ code: 'OUTBOX_NO_TRANSACTION' });
        expect(await notes.rows()).toEqual([]);
      } else {
        await ran;
        expect(await notes.rows()).toEqual([INNER]);
        expect(await events()).toEqual([INNER]);
      }
    });
  }

  it('writes outside the open transaction with NOT_SUPPORTED', async () => {
    if (database === 'sqlite') return;
    await expect(
      notes.transactions.run(async () => {
        await write(OUTER);
        await notes.transactions.run({ propagation: 'NOT_SUPPORTED' }, () => notes.repository.insert({ id: INNER }));
        throw new Error('outer');
      }),
    ).rejects.toThrow('outer');
    expect(await notes.rows()).toEqual([INNER]);
  });

  it('refuses to join at another isolation level', async () => {
    const isolation = database === 'sqlite' ? 'READ UNCOMMITTED' : 'READ COMMITTED';
    for (const propagation of ['REQUIRED', 'NESTED', 'MANDATORY', 'SUPPORTS'] as const) {
      await expect(
        notes.transactions.run({ isolation: 'SERIALIZABLE' }, () =>
          notes.transactions.run({ propagation, isolation }, async () => undefined),
        ),
      ).rejects.toMatchObject({ code: 'OUTBOX_ISOLATION_CONFLICT' });
    }
    await notes.transactions.run({ isolation: 'SERIALIZABLE' }, () =>
      notes.transactions.run({ isolation: 'SERIALIZABLE' }, () => write(INNER)),
    );
    expect(await notes.rows()).toEqual([INNER]);
  });
});
