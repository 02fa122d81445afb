import { type DynamicModule, type INestApplication, type LoggerService, type Provider, type Type } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { TypeOrmModule } from '@nestjs/typeorm';
import { type OutboxModuleOptions, OutboxModule } from 'nestjs-transactional-outbox';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { type DatabaseName, freshDatabase } from './databases';

export interface TestAppOptions {
  readonly entities?: Type<object>[];
  readonly providers?: Provider[];
  readonly controllers?: Type<object>[];
  readonly imports?: (DynamicModule | Type<object>)[];
  readonly outbox?: Partial<OutboxModuleOptions>;
  readonly dataSource?: object;
  /** Default: silence. */
  readonly logger?: LoggerService;
  /** Default: Express. */
  readonly adapter?: AbstractHttpAdapter;
  /** Called before the app is initialised. */
  readonly prepare?: (app: INestApplication) => void;
}

export interface TestApp {
  readonly app: INestApplication;
  readonly dataSource: DataSource;
  readonly broker: InMemoryBroker;
  /** Payloads in the log, in its order. */
  logged(): Promise<unknown[]>;
  close(): Promise<void>;
}

const SILENT: LoggerService = { log: () => undefined, warn: () => undefined, error: () => undefined };

/** A Nest app with the outbox on a fresh database, and its broker in memory. The relay is off unless asked for. */
export async function startApp(database: DatabaseName, options: TestAppOptions = {}): Promise<TestApp> {
  const { options: connection, drop } = await freshDatabase(database);
  const broker = new InMemoryBroker();
  const entities = options.entities ?? [];
  const moduleRef = await Test.createTestingModule({
    imports: [
      TypeOrmModule.forRoot({ ...connection, entities, synchronize: true, ...options.dataSource } as DataSourceOptions),
      TypeOrmModule.forFeature(entities),
      OutboxModule.forRoot({
        publisher: broker.publisher(),
        createTables: true,
        relay: { enabled: false },
        ...options.outbox,
      }),
      ...(options.imports ?? []),
    ],
    providers: options.providers ?? [],
    controllers: options.controllers ?? [],
  })
    .setLogger(options.logger ?? SILENT)
    .compile();
  const app: INestApplication = options.adapter ? moduleRef.createNestApplication(options.adapter) : moduleRef.createNestApplication();
  options.prepare?.(app);
  await app.init();
  const dataSource = app.get(DataSource);
  return {
    app,
    dataSource,
    broker,
    async logged() {
      const rows = (await dataSource.query('SELECT payload FROM outbox_message ORDER BY id')) as { payload: string }[];
      return rows.map(({ payload }) => JSON.parse(payload) as unknown);
    },
    async close() {
      await app.close();
      await drop();
    },
  };
}
