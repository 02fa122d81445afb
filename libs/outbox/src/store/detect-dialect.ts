import type { DataSource } from 'typeorm';
import { DatabaseUnsupportedError } from '../errors';
import type { Dialect, Sql } from './dialect';
import { mysqlDialect } from './mysql.dialect';
import { postgresDialect } from './postgres.dialect';
import { sqliteDialect } from './sqlite.dialect';
import type { TableNames } from './tables';

/** Oldest versions with SKIP LOCKED, and on MySQL with a collation that does not pad. */
const OLDEST = { mysql: [8, 0, 17], mariadb: [10, 6, 0], postgres: [13, 0, 0] } as const;

/**
 * The dialect of the server that answers, which need not be the one that the driver is named after.
 *
 * @throws DatabaseUnsupportedError
 */
export async function detectDialect(options: DataSource['options'], sql: Sql, names: TableNames): Promise<Dialect> {
  switch (options.type) {
    case 'mysql':
    case 'mariadb': {
      const version = await serverVersion(sql, 'SELECT VERSION() AS version');
      const name = /mariadb/i.test(version) ? 'mariadb' : 'mysql';
      assertVersion(name, version);
      return mysqlDialect(name, names);
    }
    case 'postgres':
      assertVersion('postgres', await serverVersion(sql, 'SHOW server_version'));
      return postgresDialect(names, options.schema);
    case 'better-sqlite3':
    case 'sqljs':
      return sqliteDialect(names);
    default:
      throw new DatabaseUnsupportedError(
        `The outbox works with MySQL, MariaDB, PostgreSQL and, in one process, SQLite, not with "${options.type}".`,
      );
  }
}

async function serverVersion(sql: Sql, query: string): Promise<string> {
  const rows = (await sql.query(query)) as Record<string, string>[];
  return Object.values(rows[0] ?? {})[0] ?? '';
}

function assertVersion(name: keyof typeof OLDEST, version: string): void {
  // Older MariaDB servers prefix their version with "5.5.5-" for the sake of replicas.
  const numbers = version.replace(/^5\.5\.5-/, '').match(/\d+/g)?.map(Number) ?? [];
  const oldest = OLDEST[name];
  for (const [index, least] of oldest.entries()) {
    const number = numbers[index] ?? 0;
    if (number > least) return;
    if (number < least) {
      throw new DatabaseUnsupportedError(
        `The outbox needs ${name} ${oldest.join('.')} or later (SKIP LOCKED); the server says ${version}.`,
      );
    }
  }
}
