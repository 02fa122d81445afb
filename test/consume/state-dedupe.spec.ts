import { randomUUID } from 'node:crypto';
import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { InjectRepository } from '@nestjs/typeorm';
import { IsInt } from 'class-validator';
import {
  applyOnce,
  ConsumerEvents,
  IdempotentConsumer,
  IdempotentRunner,
  Outbox,
  OutboxEvent,
  TransactionRunner,
} from 'nestjs-transactional-outbox';
import { Repository } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { DATABASES, SERVERS } from '../setup/databases';
import { Note, NoteWritten } from '../setup/notes';

@OutboxEvent({ type: 'note.approved', topic: 'approvals' })
class NoteApproved {
  @IsInt() id!: number;
}

/** A note is drafted, then approved; being approved is the effect. */
@Controller()
class ApprovalsController {
  constructor(
    @InjectRepository(Note) private readonly notes: Repository<Note>,
    private readonly outbox: Outbox,
  ) {}

  @EventPattern<string>('approvals')
  @IdempotentConsumer('approve', {
    dedupe: 'state',
    events: [NoteApproved],
    isApplied: ({ id }, manager) => manager.existsBy(Note, { id, text: 'approved' }),
    retry: { attempts: 2, attemptsPerDelivery: 2, backoff: 1 },
  })
  async approve(@Payload() { id }: NoteApproved): Promise<void> {
    this.outbox.emit(NoteWritten.of(id));
    await applyOnce(this.notes.update({ id, text: 'draft' }, { text: 'approved' }));
  }
}

describe.each(DATABASES)('a consumer that recognises repeats by state, on %s', (database) => {
  let app: TestApp;
  let notes: Repository<Note>;
  let runner: IdempotentRunner;
  let id = 0;

  beforeAll(async () => {
    app = await startApp(database, { entities: [Note], controllers: [ApprovalsController], dataSource: { poolSize: 10 } });
    notes = app.dataSource.getRepository(Note);
    runner = app.app.get(IdempotentRunner);
    app.app.connectMicroservice({ strategy: app.broker.server({ groupId: 'g' }) });
    await app.app.startAllMicroservices();
  });
  afterAll(() => app?.close());
  beforeEach(async () => {
    await notes.insert({ id: ++id, text: 'draft' });
  });

  const isApproved = (): Promise<boolean> => notes.existsBy({ id, text: 'approved' });
  const approve = () => applyOnce(notes.update({ id, text: 'draft' }, { text: 'approved' }));
  const rows = async (table: string): Promise<number> => (await app.dataSource.query(`SELECT * FROM ${table}`) as unknown[]).length;
  const emitted = async (): Promise<number> => (await app.logged()).filter((event) => (event as NoteWritten).id === id).length;

  it('acts once, counts the repeats, and records nothing', async () => {
    const counts = app.app.get(ConsumerEvents).counts('approve');
    const send = (note: number): void => {
      app.broker.produce('approvals', { value: JSON.stringify({ id: note }), headers: { id: randomUUID(), event_type: 'note.approved' } });
    };
    for (let copy = 0; copy < 3; copy++) send(id);
    await app.broker.idle();
    expect(await isApproved()).toBe(true);
    expect(await emitted()).toBe(1);
    expect(app.app.get(ConsumerEvents).counts('approve')).toMatchObject({ handled: counts.handled + 1, duplicate: counts.duplicate + 2, failed: 0 });
    expect(await rows('consumed_message')).toBe(0);
    // A note that is not there (yet) is no duplicate.
    send(99_999);
    await app.broker.idle();
    expect(app.app.get(ConsumerEvents).counts('approve')).toMatchObject({ duplicate: counts.duplicate + 2, failed: 2, 'dead-lettered': 1 });
    const [letter] = (await app.dataSource.query(`SELECT headers FROM outbox_message WHERE topic = 'approvals.dlt'`)) as { headers: string }[];
    expect(JSON.parse(letter?.headers ?? '')).toMatchObject({ dlt_error: 'OUTBOX_STATE_CONFLICT' });
    await app.dataSource.query('DELETE FROM consumed_message');
  });

  it('leaves nothing behind when the guard or the change finds a duplicate', async () => {
    const spare = 1000 + id;
    const write = async (): Promise<void> => {
      await notes.insert({ id: spare });
      app.app.get(Outbox).emit(NoteWritten.of(id));
    };
    await notes.update({ id }, { text: 'approved' });
    const byGuard = runner.run('s', 'm', () => Promise.reject(new Error('must not run')), {
      dedupe: 'state',
      isApplied: async () => (await write(), true),
    });
    expect(await byGuard).toEqual({ duplicate: true });
    // The other copy commits between the guard and the change.
    let asked = 0;
    const byChange = runner.run('s', 'm', async () => (await write(), await approve()), {
      dedupe: 'state',
      isApplied: async (manager) => asked++ > 0 && manager.existsBy(Note, { id, text: 'approved' }),
    });
    expect(await byChange).toEqual({ duplicate: true });
    expect(await notes.existsBy({ id: spare })).toBe(false);
    expect(await emitted()).toBe(0);
  });

  it('undoes its own part only inside an open transaction', async () => {
    await notes.update({ id }, { text: 'approved' });
    await app.app.get(TransactionRunner).run(async () => {
      await notes.insert({ id: 2000 + id });
      const isApplied = async (): Promise<boolean> => (await notes.insert({ id: 3000 + id }), true);
      expect(await runner.run('s', 'm', async () => 1, { dedupe: 'state', isApplied })).toEqual({ duplicate: true });
    });
    expect(await notes.existsBy({ id: 2000 + id })).toBe(true);
    expect(await notes.existsBy({ id: 3000 + id })).toBe(false);
  });

  it('acts once however many copies come at once', async () => {
    const options = { dedupe: 'state', isApplied: isApproved } as const;
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => runner.run('s', 'm', approve, options)));
    expect(outcomes.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
  });

  it('counts matched rows: a change to what is there already is one', async () => {
    expect(await applyOnce(notes.update({ id, text: 'draft' }, { text: 'draft' }))).toBe(1);
    expect(await applyOnce(notes.createQueryBuilder().update().set({ text: 'x' }).where({ id }).execute())).toBe(1);
    expect(await applyOnce(notes.delete({ id }))).toBe(1);
    await expect(applyOnce(notes.delete({ id }))).rejects.toMatchObject({ code: 'OUTBOX_ALREADY_APPLIED', retryable: false });
    await expect(applyOnce(Promise.resolve({}))).rejects.toMatchObject({ code: 'OUTBOX_OPTIONS_INVALID' });
  });
});

describe.each(SERVERS.filter((name) => name !== 'postgres'))('on %s, where the driver is told to count changed rows', (database) => {
  it('a change that changes nothing is no duplicate unless the guard says so', async () => {
    const app = await startApp(database, { entities: [Note], dataSource: { flags: ['-FOUND_ROWS'] } });
    try {
      const notes = app.dataSource.getRepository(Note);
      await notes.insert({ id: 1, text: 'same' });
      const same = app.app.get(IdempotentRunner).run('s', 'm', () => applyOnce(notes.update({ id: 1 }, { text: 'same' })), {
        dedupe: 'state',
        isApplied: () => false,
      });
      await expect(same).rejects.toMatchObject({ code: 'OUTBOX_STATE_CONFLICT' });
    } finally {
      await app.close();
    }
  });
});

it('is refused in combinations that make no sense', () => {
  const invalid = (options: object) => () => IdempotentConsumer('c', options as { dedupe: 'table' });
  expect(invalid({ dedupe: 'state' })).toThrow(/isApplied/);
  expect(invalid({ isApplied: () => true })).toThrow(/isApplied/);
  expect(invalid({ dedupe: 'redis', isApplied: () => true })).toThrow(/isApplied/);
  expect(invalid({ dedupe: 'state', isApplied: () => true, concurrentCopies: 'fail' })).toThrow(/concurrentCopies/);
  expect(invalid({ dedupe: 'memory' })).toThrow(/dedupe must be/);
});
