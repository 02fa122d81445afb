import { randomBytes } from 'node:crypto';
import { DataSource, type DataSourceOptions } from 'typeorm';

/** The databases that everything must work on. */
export const DATABASES = ['mysql', 'mariadb', 'postgres', 'sqlite'] as const;
export type DatabaseName = (typeof DATABASES)[number];

/** Those with several connections, and so with concurrency. */
export const SERVERS = ['mysql', 'mariadb', 'postgres'] as const;

export interface FreshDatabase {
  readonly options: DataSourceOptions;
  drop(): Promise<void>;
}

/** A database of its own for one test file, on the shared server. */
export async function freshDatabase(name: DatabaseName): Promise<FreshDatabase> {
  if (name === 'sqlite') return { options: { type: 'better-sqlite3', database: ':memory:' }, drop: async () => undefined };
  const server = serverOptions(name);
  const database = `test_${randomBytes(6).toString('hex')}`;
  const charset = name === 'postgres' ? '' : ' CHARACTER SET utf8mb4';
  await onServer(server, (admin) => admin.query(`CREATE DATABASE ${database}${charset}`));
  return {
    options: { ...server, database } as DataSourceOptions,
    drop: () => onServer(server, (admin) => admin.query(`DROP DATABASE ${database}${name === 'postgres' ? ' WITH (FORCE)' : ''}`)),
  };
}

/** A data source on a fresh database, and what ends both. */
export async function freshDataSource(
  name: DatabaseName,
  extra: Partial<DataSourceOptions> = {},
): Promise<{ dataSource: DataSource; close(): Promise<void> }> {
  const { options, drop } = await freshDatabase(name);
  const dataSource = await new DataSource({ ...options, ...extra } as DataSourceOptions).initialize();
  return {
    dataSource,
    async close() {
      if (dataSource.isInitialized) await dataSource.destroy();
      await drop();
    },
  };
}

function serverOptions(name: Exclude<DatabaseName, 'sqlite'>): DataSourceOptions {
  const url = process.env[`OUTBOX_${name.toUpperCase()}_URL`];
  if (!url) throw new Error(`OUTBOX_${name.toUpperCase()}_URL is not set: the tests' global setup provides it.`);
  const { hostname, port, username, password, pathname } = new URL(url);
  const common = {
    host: hostname,
    port: Number(port),
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: pathname.slice(1),
  };
  return name === 'postgres' ? { type: 'postgres', ...common } : { type: name, ...common };
}

async function onServer(options: DataSourceOptions, work: (admin: DataSource) => Promise<unknown>): Promise<void> {
  const admin = await new DataSource(options).initialize();
  try {
    await work(admin);
  } finally {
    await admin.destroy();
  }
}
