import type { DataSource } from 'typeorm';
import { DatabaseUnsupportedError } from '../errors';
import type { Dialect, Sql } from './dialect';
import { mysqlDialect } from './mysql.dialect';
import { postgresDialect } from './postgres.dialect';
import { sqliteDialect } from './sqlite.dialect';
import type { TableNames } from './tables';

type Version = readonly number[];

/** Oldest versions that the outbox works with at all. */
const OLDEST = { mysql: [5, 7, 7], mariadb: [10, 2, 3], postgres: [13, 0, 0] } as const;
/** Oldest versions that can pass by locked rows. Before them lanes are locked by name. */
const SKIP_LOCKED = { mysql: [8, 0, 1], mariadb: [10, 6, 0] } as const;
/** Oldest version with a binary collation that does not pad. */
const NO_PAD = { mysql: [8, 0, 17], mariadb: [10, 2, 3] } as const;
/** Oldest versions with JSON_TABLE. */
const JSON_TABLE = { mysql: [8, 0, 4], mariadb: [10, 6, 0] } as const;

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
      await assertCharset(sql);
      const capabilities = {
        skipLocked: isAtLeast(version, SKIP_LOCKED[name]),
        noPad: isAtLeast(version, NO_PAD[name]),
        jsonTable: isAtLeast(version, JSON_TABLE[name]),
      };
      return mysqlDialect(name, names, capabilities);
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

/** With another one the driver damages what is beyond it, such as emoji, or the server refuses it row by row. */
async function assertCharset(sql: Sql): Promise<void> {
  const rows = (await sql.query('SELECT @@SESSION.character_set_client AS charset')) as { charset: string }[];
  const charset = rows[0]?.charset;
  if (charset === 'utf8mb4') return;
  throw new DatabaseUnsupportedError(
    `The connection's character set is ${charset}, which cannot carry every text. Set charset: 'utf8mb4_unicode_ci' on ` +
      'the data source, or leave charset out.',
  );
}

function assertVersion(name: keyof typeof OLDEST, version: string): void {
  if (isAtLeast(version, OLDEST[name])) return;
  throw new DatabaseUnsupportedError(
    `The outbox needs ${name} ${OLDEST[name].join('.')} or later; the server says ${version}.`,
  );
}

function isAtLeast(version: string, least: Version): boolean {
  // Older MariaDB servers prefix their version with "5.5.5-" for the sake of replicas.
  const numbers = version.replace(/^5\.5\.5-/, '').match(/\d+/g)?.map(Number) ?? [];
  for (const [index, number] of least.entries()) {
    const actual = numbers[index] ?? 0;
    if (actual !== number) return actual > number;
  }
  return true;
}
