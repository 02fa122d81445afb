import { randomBytes } from 'node:crypto';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { down, up } from '../../test/services/index.mjs';

export const SERVERS = ['mysql', 'mariadb', 'postgres'] as const;
export type ServerName = (typeof SERVERS)[number];

/** Runs work on a fresh database of a real server with durable defaults, and leaves nothing behind. */
export async function withDatabase<T>(name: ServerName, work: (options: DataSourceOptions) => Promise<T>): Promise<T> {
  const servers = await up([name]);
  const { host, port, user, password, database } = servers[name];
  const server = { type: name, host, port, username: user, password, database } as DataSourceOptions;
  const fresh = `bench_${randomBytes(4).toString('hex')}`;
  const admin = await new DataSource(server).initialize();
  try {
    await admin.query(`CREATE DATABASE ${fresh}`);
    return await work({ ...server, database: fresh } as DataSourceOptions);
  } finally {
    await admin.query(`DROP DATABASE ${fresh}${name === 'postgres' ? ' WITH (FORCE)' : ''}`);
    await admin.destroy();
    await down(servers.started);
  }
}
