import { randomBytes } from 'node:crypto';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { down, type OwnServer, type ServiceInfo, type ServiceName, startOwn, up } from '../../test/services/index.mjs';
import type { BenchOptions, DatabaseName } from './arguments.js';
import { describeSurroundings, type Surroundings } from './surroundings.js';

/** Where a bench works. */
export interface Ground {
  /** A fresh database. */
  readonly database: DataSourceOptions;
  readonly brokers: readonly string[];
  readonly surroundings: Surroundings;
}

/**
 * Runs work on a fresh database of a real server, and with Kafka where that is needed, and leaves nothing behind. The
 * servers are private, with the settings that they come with, unless it is only a smoke test.
 */
export async function withServers<T>(
  { db, smoke }: BenchOptions,
  kafka: 'with Kafka' | 'without Kafka',
  work: (ground: Ground) => Promise<T>,
): Promise<T> {
  const names: ServiceName[] = kafka === 'with Kafka' ? [db, 'kafka'] : [db];
  const servers = smoke ? await sharedServers(names) : await privateServers(names);
  const stop = (signal: NodeJS.Signals): void => {
    // Whoever is still at work loses the servers under its feet.
    process.on('uncaughtException', () => undefined);
    void servers.end().finally(() => process.exit(signal === 'SIGINT' ? 130 : 143));
  };
  for (const signal of SIGNALS) process.once(signal, stop);
  try {
    return await withDatabase(db, servers.infoOf(db), async (database, sql) =>
      work({
        database,
        brokers: kafka === 'with Kafka' ? (servers.infoOf('kafka').brokers ?? [servers.infoOf('kafka').url]) : [],
        surroundings: await describeSurroundings(db, sql, names.map((name) => servers.infoOf(name))),
      }),
    );
  } finally {
    await servers.end();
    for (const signal of SIGNALS) process.off(signal, stop);
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

interface Servers {
  infoOf(name: ServiceName): ServiceInfo;
  end(): Promise<unknown>;
}

async function sharedServers(names: readonly ServiceName[]): Promise<Servers> {
  const servers = await up(names);
  return { infoOf: (name) => servers[name], end: () => down(servers.started) };
}

async function privateServers(names: readonly ServiceName[]): Promise<Servers> {
  const started = new Map<ServiceName, OwnServer>();
  const end = (): Promise<unknown> => Promise.all([...started.values()].map((server) => server.remove()));
  try {
    for (const name of names) started.set(name, await startOwn(name));
  } catch (error) {
    await end();
    throw error;
  }
  return {
    infoOf(name) {
      const server = started.get(name);
      if (!server) throw new Error(`The bench has no ${name}.`);
      return server.info;
    },
    end,
  };
}

async function withDatabase<T>(
  type: DatabaseName,
  { host, port, user: username, password, database }: ServiceInfo,
  work: (options: DataSourceOptions, sql: DataSource) => Promise<T>,
): Promise<T> {
  const server = { type, host, port, username, password, database } as DataSourceOptions;
  const fresh = `bench_${randomBytes(4).toString('hex')}`;
  const admin = await new DataSource(server).initialize();
  try {
    await admin.query(`CREATE DATABASE ${fresh}`);
    return await work({ ...server, database: fresh } as DataSourceOptions, admin);
  } finally {
    await admin.query(`DROP DATABASE ${fresh}${type === 'postgres' ? ' WITH (FORCE)' : ''}`);
    await admin.destroy();
  }
}
