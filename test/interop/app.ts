import { type DynamicModule, type Provider, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { TypeOrmModule } from '@nestjs/typeorm';
import { type OutboxModuleOptions, OutboxModule } from 'nestjs-transactional-outbox';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { DataSource, type DataSourceOptions, type EntityManager } from 'typeorm';
import { type DatabaseName, freshDatabase } from '../setup/databases';
import { Note, Notes } from '../setup/notes';

export interface InteropApp {
  readonly dataSource: DataSource;
  get<T>(type: Type<T>): T;
  /** Ids in the table and in the log. */
  written(): Promise<{ rows: number[]; events: number[] }>;
  close(): Promise<void>;
}

export interface InteropAppOptions {
  readonly dataSourceFactory?: (dataSource: DataSource) => DataSource;
  readonly ambientManager?: (dataSource: DataSource) => EntityManager | undefined;
  readonly providers?: Provider[];
  readonly imports?: (DynamicModule | Type<object>)[];
  readonly entities?: Type<object>[];
  readonly outbox?: Partial<OutboxModuleOptions>;
}

/** An app that keeps its transactions with another library. */
export async function startInteropApp(database: DatabaseName, options: InteropAppOptions): Promise<InteropApp> {
  const { options: connection, drop } = await freshDatabase(database);
  const entities = [Note, ...(options.entities ?? [])];
  const { ambientManager } = options;
  const moduleRef = await Test.createTestingModule({
    imports: [
      TypeOrmModule.forRootAsync({
        useFactory: () => ({ ...connection, entities, synchronize: true }),
        dataSourceFactory: async (given) => {
          const dataSource = new DataSource(given as DataSourceOptions);
          await (options.dataSourceFactory?.(dataSource) ?? dataSource).initialize();
          return dataSource;
        },
      }),
      TypeOrmModule.forFeature(entities),
      OutboxModule.forRootAsync({
        inject: [DataSource],
        useFactory: (dataSource: DataSource) => ({
          publisher: new InMemoryBroker().publisher(),
          createTables: true,
          relay: { enabled: false },
          ...(ambientManager ? { ambientManager: () => ambientManager(dataSource) } : {}),
          ...options.outbox,
        }),
      }),
      ...(options.imports ?? []),
    ],
    providers: [Notes, ...(options.providers ?? [])],
  })
    .setLogger({ log: () => undefined, warn: () => undefined, error: () => undefined })
    .compile();
  const app = moduleRef.createNestApplication();
  await app.init();
  const dataSource = app.get(DataSource);
  return {
    dataSource,
    get: (type) => app.get(type),
    async written() {
      const rows = (await dataSource.query('SELECT id FROM note ORDER BY id')) as { id: number }[];
      const logged = (await dataSource.query('SELECT payload FROM outbox_message')) as { payload: string }[];
      const events = logged.map(({ payload }) => (JSON.parse(payload) as { id: number }).id);
      return { rows: rows.map(({ id }) => id), events: events.toSorted((a, b) => a - b) };
    },
    async close() {
      await app.close();
      await drop();
    },
  };
}
