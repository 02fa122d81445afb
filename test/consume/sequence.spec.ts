import { randomUUID } from 'node:crypto';
import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { InjectRepository } from '@nestjs/typeorm';
import { IsString } from 'class-validator';
import { ConsumerEvents, IdempotentConsumer, OutboxEvent, outboxMigrations, TransactionRunner } from 'nestjs-transactional-outbox';
import { DataSource, type DataSourceOptions, Repository } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { DATABASES, freshDatabase } from '../setup/databases';
import { Note } from '../setup/notes';
import { detectDialect } from '../../libs/outbox/src/store/detect-dialect';
import { OutboxStore } from '../../libs/outbox/src/store/outbox-store';
import { tableNames } from '../../libs/outbox/src/store/tables';

@OutboxEvent({ type: 'price.set', topic: 'prices' })
class PriceSet {
  @IsString() version!: string;
}

describe.each(DATABASES)('events in sequence on %s', (database) => {
  let app: TestApp;
  const got: string[] = [];
  let failures = 0;

  @Controller()
  class PricesController {
    constructor(@InjectRepository(Note) private readonly notes: Repository<Note>) {}

    @EventPattern<string>('prices')
    @IdempotentConsumer('show', { events: [PriceSet], sequence: { of: (event) => event.version }, retry: { attempts: 2, attemptsPerDelivery: 2, backoff: 1 } })
    async show(@Payload() { version }: PriceSet): Promise<void> {
      await this.notes.upsert({ id: 1, text: version }, ['id']);
      if (failures-- > 0) throw new Error('no');
      got.push(version);
    }

    @EventPattern<string>('numbers')
    @IdempotentConsumer('number', { sequence: { of: (payload: { n: number }) => payload.n, key: () => 'all', onStale: 'dead-letter' } })
    async number(@Payload() { n }: { n: number }): Promise<void> {
      got.push(String(n));
    }
  }

  beforeAll(async () => {
    app = await startApp(database, { entities: [Note], controllers: [PricesController] });
    app.app.connectMicroservice({ strategy: app.broker.server({ groupId: 'g' }) });
    await app.app.startAllMicroservices();
  });
  afterAll(() => app?.close());

  async function send(key: string | null, ...versions: string[]): Promise<string[]> {
    got.length = 0;
    for (const version of versions) {
      app.broker.produce('prices', { key, value: JSON.stringify({ version }), headers: { id: randomUUID(), event_type: 'price.set' } });
    }
    await app.broker.idle();
    return [...got];
  }
  const counts = (consumer: string) => app.app.get(ConsumerEvents).counts(consumer);
  const letters = async (topic: string): Promise<Record<string, string>[]> =>
    ((await app.dataSource.query(`SELECT headers FROM outbox_message WHERE topic = '${topic}.dlt' ORDER BY id`)) as { headers: string }[]).map(
      ({ headers }) => JSON.parse(headers) as Record<string, string>,
    );

  it('never go back, whatever order they come in, and the stale ones are counted', async () => {
    expect(await send('a', '1', '3', '2', '3', '5', '4')).toEqual(['1', '3', '3', '5']);
    expect(await send('b', '2')).toEqual(['2']);
    expect(counts('show')).toMatchObject({ handled: 5, stale: 2, failed: 0, 'dead-lettered': 0 });
    const [row] = (await app.dataSource.query(`SELECT COUNT(*) AS n FROM consumed_message`)) as { n: string | number }[];
    expect(Number(row?.n)).toBe(7);
  });

  it('are compared as whole numbers of 64 bits', async () => {
    const versions = ['-9223372036854775808', '9', '10', '9007199254740992', '9007199254740993', '9223372036854775806', '9223372036854775807'];
    expect(await send('big', ...versions)).toEqual(versions);
    expect(await send('big', ...versions)).toEqual(['9223372036854775807']);
    const before = counts('show')['dead-lettered'];
    expect(await send('bad', '9223372036854775808', '1.5', '', 'x', '0x10')).toEqual([]);
    expect(await send(null, '1')).toEqual([]);
    expect(await send('k'.repeat(191), '1')).toEqual([]);
    expect(counts('show')['dead-lettered']).toBe(before + 7);
    expect((await letters('prices')).map((letter) => letter['dlt_error'])).toEqual(Array.from({ length: 7 }, () => 'OUTBOX_SEQUENCE_INVALID'));
  });

  it('that fail do not move the key on', async () => {
    failures = 2;
    expect(await send('c', '7', '6')).toEqual(['6']);
    failures = 1;
    expect(await send('c', '8', '7')).toEqual(['8']);
  });

  it('can go to the dead-letter topic when they are stale', async () => {
    got.length = 0;
    for (const n of [5, 4, 6]) app.broker.produce('numbers', { key: 'k', value: JSON.stringify({ n }), headers: { id: `n${n}` } });
    await app.broker.idle();
    expect(got).toEqual(['5', '6']);
    expect((await letters('numbers'))[0]).toMatchObject({ dlt_id: 'n4', dlt_error: 'OUTBOX_MESSAGE_STALE' });
    expect(counts('number')).toMatchObject({ handled: 2, 'dead-lettered': 1, failed: 0 });
  });

  it('of one key that come at once, to several processes, never go back', async () => {
    // As many stores as there would be processes, on one database; SQLite has one process only.
    const transactions = app.app.get(TransactionRunner);
    const store = new OutboxStore(await detectDialect(app.dataSource.options, app.dataSource, tableNames({})), 64, 'none');
    for (let round = 0; round < 5; round++) {
      const applied: bigint[] = [];
      const advance = (n: bigint) =>
        transactions.run({ retries: 10 }, async () => {
          const last = await store.advanceSequence(app.dataSource, 'race', `k${round}`, String(n));
          if (last === String(n)) transactions.afterCommit(() => applied.push(n));
          if (n % 4n === 0n) throw new Error('undo');
        });
      await Promise.allSettled(Array.from({ length: 16 }, (_, n) => advance(BigInt(n * 7) % 16n)));
      const [row] = (await app.dataSource.query(`SELECT last_place FROM consumed_sequence WHERE sequence_key = 'k${round}'`)) as { last_place: unknown }[];
      expect(String(row?.last_place)).toBe('15');
      expect(applied).toEqual(applied.toSorted((x, y) => Number(x - y)));
      expect(applied.at(-1)).toBe(15n);
    }
  });

  // F5
  it('have a table that the migration makes, also again after half a failure', async () => {
    const { options, drop } = await freshDatabase(database);
    const dataSource = await new DataSource({ ...options, migrations: outboxMigrations() } as DataSourceOptions).initialize();
    try {
      await dataSource.runMigrations();
      await dataSource.query('DROP TABLE consumed_sequence');
      await dataSource.query('DELETE FROM migrations');
      await dataSource.runMigrations();
      expect(await dataSource.query('SELECT * FROM consumed_sequence')).toEqual([]);
      await dataSource.undoLastMigration();
      await expect(dataSource.query('SELECT * FROM consumed_sequence')).rejects.toThrow();
    } finally {
      await dataSource.destroy();
      await drop();
    }
  });
});

it('a sequence is refused in combinations that make no sense', () => {
  const invalid = (options: object) => () => IdempotentConsumer('c', options as { dedupe: 'table' });
  expect(invalid({ dedupe: 'redis', sequence: { of: () => 1 } })).toThrow(/transaction/);
  expect(invalid({ sequence: {} })).toThrow(/"of"/);
  expect(invalid({ sequence: { of: () => 1, onStale: 'stop' } })).toThrow(/onStale/);
});
