import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cpus, loadavg, totalmem } from 'node:os';
import type { DataSource } from 'typeorm';
import type { ServiceInfo } from '../../test/services/index.mjs';
import type { DatabaseName } from './arguments.js';

/** What a figure means nothing without. */
export interface Surroundings {
  readonly machine: { readonly cpu: string; readonly cores: number; readonly memoryGb: number; readonly loadBefore: number };
  readonly versions: Readonly<Record<string, string>>;
  /** What decides how durable the database is, as the server says it. */
  readonly settings: Readonly<Record<string, string>>;
}

const SETTINGS: Record<DatabaseName, readonly string[]> = {
  mysql: ['innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'innodb_buffer_pool_size', 'transaction_isolation'],
  mariadb: ['innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'innodb_buffer_pool_size', 'tx_isolation'],
  postgres: ['fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'autovacuum'],
};

const PACKAGES = ['nestjs-transactional-outbox', 'typeorm', 'mysql2', 'pg', 'kafkajs', '@platformatic/kafka', '@nestjs/core'];

export async function describeSurroundings(
  db: DatabaseName,
  sql: DataSource,
  servers: readonly ServiceInfo[],
): Promise<Surroundings> {
  const [cpu] = cpus();
  const versions = Object.fromEntries(PACKAGES.map((name) => [name, versionOf(name)]));
  for (const { name, version } of servers) versions[name] = version;
  return {
    machine: {
      cpu: cpu?.model ?? 'unknown',
      cores: cpus().length,
      memoryGb: Math.round(totalmem() / 2 ** 30),
      loadBefore: Math.round((loadavg()[0] ?? 0) * 100) / 100,
    },
    versions: { node: process.version, ...versions },
    settings: await settingsOf(db, sql),
  };
}

async function settingsOf(db: DatabaseName, sql: DataSource): Promise<Record<string, string>> {
  const names = SETTINGS[db];
  const list = names.map((name) => `'${name}'`).join(', ');
  const rows = (await sql.query(
    db === 'postgres'
      ? `SELECT name AS name, setting AS value FROM pg_settings WHERE name IN (${list})`
      : `SHOW GLOBAL VARIABLES WHERE Variable_name IN (${list})`,
  )) as Record<string, string>[];
  return Object.fromEntries(rows.map((row) => Object.values(row) as [string, string]));
}

/** Of what the bench itself would load. */
function versionOf(name: string): string {
  for (const folder of createRequire(import.meta.url).resolve.paths(name) ?? []) {
    try {
      return (JSON.parse(readFileSync(`${folder}/${name}/package.json`, 'utf8')) as { version: string }).version;
    } catch {
      // It is in a folder further up.
    }
  }
  return 'unknown';
}
