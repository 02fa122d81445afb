import { Controller, Injectable, Post, type Type } from '@nestjs/common';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { TypeOrmModule } from '@nestjs/typeorm';
import {
  EmitsEvent,
  Outbox,
  OutboxEvent,
  OutboxModule,
  type OutboxModuleOptions,
  outboxMigrations,
  Transactional,
} from 'nestjs-transactional-outbox';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { DATABASES, freshDatabase, freshDataSource } from '../setup/databases';
import { startApp } from '../setup/app';
import { Note, Notes, NoteWritten } from '../setup/notes';

const memory: DataSourceOptions = { type: 'better-sqlite3', database: ':memory:' };
const publisher = new InMemoryBroker().publisher();

async function boot(...imports: Parameters<typeof Test.createTestingModule>[0]['imports'] & object): Promise<void> {
  const module = await Test.createTestingModule({ imports }).setLogger(false as never).compile();
  await module.close();
}

describe('at boot', () => {
  it.each([
    [{}, 'publisher is missing'],
    [{ publisher: 'kafka' }, 'publisher must be a function'],
    [{ publisher, topics: [] }, 'Unknown option topics'],
    [{ publisher, relay: { batch: 1 } }, 'Unknown option relay.batch'],
    [{ publisher, relay: { batchSize: 0 } }, 'relay.batchSize'],
    [{ publisher, lanes: 0 }, 'lanes'],
    [{ publisher, order: 'strict' }, 'order'],
    [{ publisher: Object.assign(() => publisher(), { capabilities: { order: false } }) }, "order: 'none'"],
    [{ publisher, tables: { message: 'a b' } }, 'tables.message'],
    [{ publisher, tables: { log: 'a' } }, 'log'],
    [{ publisher, context: {} }, 'context'],
    [{ publisher, cloudEvents: { source: 'two words' } }, 'cloudEvents.source'],
    [{ publisher, cloudEvents: { source: '/orders', type: 'x' } }, 'Unknown option cloudEvents.type'],
    [{ publisher, retention: true }, 'retention must be an object'],
    [{ publisher, retention: { sent: '7d' } }, 'retention.sent'],
    [{ publisher, retention: { keep: 1 } }, 'Unknown option retention.keep'],
    [{ publisher, retention: { mode: 'drop' } }, 'retention.mode'],
    [{ publisher, retention: { batchSize: 0 } }, 'retention.batchSize'],
    [{ publisher, retention: { mode: 'partition', sent: false } }, 'retention.sent'],
    [{ publisher, retention: { mode: 'partition', ahead: 31 } }, 'retention.ahead'],
    [{ publisher, retention: { ahead: 3 } }, 'retention.ahead'],
  ])('wrong options are refused, by name: %j', async (options, named) => {
    await expect(
      boot(TypeOrmModule.forRoot(memory), OutboxModule.forRoot({ createTables: true, ...options } as OutboxModuleOptions)),
    ).rejects.toMatchObject({ code: 'OUTBOX_OPTIONS_INVALID', message: expect.stringContaining(named) as unknown });
  });

  it('options that are none are refused', async () => {
    for (const module of [
      OutboxModule.forRoot(undefined as never),
      OutboxModule.forRootAsync({ useFactory: () => undefined as never }),
    ]) {
      await expect(boot(TypeOrmModule.forRoot(memory), module)).rejects.toMatchObject({ code: 'OUTBOX_OPTIONS_INVALID' });
    }
  });

  it('a missing data source is said so', async () => {
    await expect(boot(OutboxModule.forRoot({ publisher }))).rejects.toMatchObject({ code: 'OUTBOX_DATA_SOURCE_MISSING' });
    await expect(
      boot(TypeOrmModule.forRoot(memory), OutboxModule.forRoot({ publisher, dataSource: 'other' })),
    ).rejects.toMatchObject({ code: 'OUTBOX_DATA_SOURCE_MISSING' });
  });

  it('missing tables are said so, and what to do', async () => {
    await expect(boot(TypeOrmModule.forRoot(memory), OutboxModule.forRoot({ publisher }))).rejects.toMatchObject({
      code: 'OUTBOX_TABLES_MISSING',
      message: expect.stringContaining('outboxMigrations()') as unknown,
    });
  });

  it('a second import is refused', async () => {
    await expect(
      boot(
        TypeOrmModule.forRoot(memory),
        OutboxModule.forRoot({ publisher, createTables: true }),
        OutboxModule.forRoot({ publisher, createTables: true }),
      ),
    ).rejects.toMatchObject({ code: 'OUTBOX_MODULE_DUPLICATE' });
  });

  it('a decorated class in an app without the module is refused', async () => {
    @Injectable()
    class Service {
      @Transactional() async work(): Promise<void> {}
    }
    await expect(
      Test.createTestingModule({ providers: [Service] }).setLogger(false as never).compile(),
    ).rejects.toThrow(/OutboxModule\.forRoot\(\)/);
  });

  it('two event classes of one type are refused', async () => {
    @OutboxEvent({ type: 'note.written', topic: 'other' })
    class Another {
      id = 1;
    }
    @Injectable()
    class Both {
      @Transactional() @EmitsEvent(NoteWritten, () => ({ id: 1 })) async one(): Promise<void> {}
      @Transactional() @EmitsEvent(Another, () => ({ id: 1 })) async two(): Promise<void> {}
    }
    await expect(startApp('sqlite', { providers: [Both] })).rejects.toMatchObject({ code: 'OUTBOX_EVENT_DUPLICATE' });
    const app = await startApp('sqlite', { entities: [Note], providers: [Notes] });
    const { transactions, outbox } = app.app.get(Notes);
    await expect(
      transactions.run(async () => {
        outbox.emit(NoteWritten.of(1));
        outbox.emit(new Another());
      }),
    ).rejects.toMatchObject({ code: 'OUTBOX_EVENT_DUPLICATE' });
    await app.close();
  });

  it('a route that emits without a transaction is warned of', async () => {
    @Controller()
    class Routes {
      @Post('a') @EmitsEvent(NoteWritten, () => ({ id: 1 })) async without(): Promise<void> {}
      @Post('b') @EmitsEvent(NoteWritten, () => ({ id: 1 })) @Transactional() async within(): Promise<void> {}
    }
    const warnings: string[] = [];
    const logger = { log: () => undefined, error: () => undefined, warn: (text: string) => warnings.push(text) };
    const app = await startApp('sqlite', { controllers: [Routes], logger });
    await app.close();
    expect(warnings.filter((text) => text.includes('@EmitsEvent'))).toEqual([
      'Routes.without has @EmitsEvent and no @Transactional(): called by itself it will be refused.',
    ]);
  });

  it('options can come from a factory', async () => {
    class Config {
      readonly lanes = 8;
    }
    await boot(
      TypeOrmModule.forRoot(memory),
      OutboxModule.forRootAsync({
        inject: [Config],
        imports: [{ module: class ConfigModule {}, providers: [Config], exports: [Config] }],
        useFactory: async ({ lanes }: Config) => ({ publisher, lanes, createTables: true }),
      }),
    );
  });

  it('the relay is one interval in the app\'s scheduler, and none after it closed', async () => {
    const app = await startApp('sqlite', { imports: [ScheduleModule.forRoot()], outbox: { relay: {} } });
    const registry = app.app.get(SchedulerRegistry);
    // In any order: the relay gets ready first, which takes a moment.
    expect(registry.getIntervals().toSorted()).toEqual(['outbox-cleaner', 'outbox-relay']);
    await app.close();
    expect(registry.getIntervals()).toEqual([]);
  });

  // C8
  it('an app can be built again and again in one process', async () => {
    for (let i = 0; i < 3; i++) {
      const app = await startApp('sqlite', { entities: [Note], providers: [Notes], outbox: { relay: {} } });
      await app.app.get(Notes).transactions.run(() => app.app.get(Notes).write(i));
      await expect.poll(() => app.broker.records('notes')).toHaveLength(1);
      await app.close();
    }
  });
});

// C7
describe('several data sources', () => {
  it('each have an outbox of their own, found by name', async () => {
    @Injectable()
    class Writer {
      constructor(readonly a: Outbox) {}
      @Transactional({ dataSource: 'b' })
      async inB(work: () => Promise<void>): Promise<void> {
        await work();
      }
    }
    const names = ['default', 'b'];
    const module = await Test.createTestingModule({
      imports: [
        ...names.map((name) => TypeOrmModule.forRoot({ ...memory, name, entities: [Note], synchronize: true } as DataSourceOptions)),
        ...names.map((dataSource) =>
          OutboxModule.forRoot({ publisher, dataSource, createTables: true, relay: { enabled: false } }),
        ),
      ],
      providers: [Writer],
    })
      .setLogger(false as never)
      .compile();
    const writer = module.get(Writer);
    const outboxB = module.get<Outbox>('bOutbox');
    const [sourceA, sourceB] = [module.get(DataSource), module.get<DataSource>('bDataSource')];
    const count = async (source: DataSource): Promise<number[]> => {
      const [notes, messages] = [await source.getRepository(Note).count(), await source.query('SELECT 1 FROM outbox_message')];
      return [notes, (messages as unknown[]).length];
    };
    const message = { topic: 't', type: 'x', payload: '{}' };

    await expect(writer.inB(async () => writer.a.emitRaw(message))).rejects.toMatchObject({ code: 'OUTBOX_NO_TRANSACTION' });
    await expect(
      writer.inB(async () => {
        await sourceB.getRepository(Note).insert({ id: 1 });
        outboxB.emitRaw(message);
        throw new Error('undo');
      }),
    ).rejects.toThrow('undo');
    expect([await count(sourceA), await count(sourceB)]).toEqual([[0, 0], [0, 0]]);
    await writer.inB(async () => {
      await sourceB.getRepository(Note).insert({ id: 1 });
      outboxB.emitRaw(message);
      await sourceA.getRepository(Note).insert({ id: 2 });
    });
    expect([await count(sourceA), await count(sourceB)]).toEqual([[1, 0], [1, 1]]);
    await module.close();
  });
});

describe.each(DATABASES)('migrations on %s', (database) => {
  // F5
  it('can be run, undone, and run again after half a failure', async () => {
    const { dataSource, close } = await freshDataSource(database, { migrations: outboxMigrations({ lanes: 4 }) as Type<never>[] });
    try {
      await dataSource.query('CREATE TABLE outbox_held (id INT)');
      await dataSource.query('DROP TABLE outbox_held');
      await dataSource.runMigrations();
      await dataSource.undoLastMigration();
      await dataSource.runMigrations();
      // As if the process had died between the last statement and the note that the migration ran.
      await dataSource.query('DELETE FROM migrations');
      await dataSource.query('DROP TABLE consumed_message');
      await dataSource.runMigrations();
      const [lanes] = (await dataSource.query('SELECT COUNT(*) AS n FROM outbox_lane')) as { n: number | string }[];
      expect(Number(lanes?.n)).toBe(4);
    } finally {
      await close();
    }
  });

  it('and synchronize leave the tables alone', async () => {
    const { options, drop } = await freshDatabase(database);
    const dataSource = await new DataSource({ ...options, migrations: outboxMigrations(), entities: [Note] } as DataSourceOptions).initialize();
    try {
      await dataSource.runMigrations();
      await dataSource.query("INSERT INTO consumed_message (consumer, message_id, consumed_at) VALUES ('c', 'm', '2026-01-01')");
      await dataSource.synchronize();
      expect(await dataSource.query('SELECT consumer, message_id FROM consumed_message')).toEqual([{ consumer: 'c', message_id: 'm' }]);
    } finally {
      await dataSource.destroy();
      await drop();
    }
  });
});
