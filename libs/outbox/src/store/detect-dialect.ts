import type { DataSource, QueryRunner } from 'typeorm';
import { DatabaseUnsupportedError } from '../errors';
import type { Dialect, Sql } from './dialect';
import type { InsertWay } from './mysql-insert';
import { type KeyCollations, readKeyCollations } from './mysql-key-types';
import { mysqlDialect } from './mysql.dialect';
import { postgresDialect } from './postgres.dialect';
import { hasOwnSession } from './postgres-session';
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

/** What answers, which need not be what the driver is named after. */
export interface Server {
  readonly name: Dialect['name'];
  /** As it says itself; empty for SQLite. */
  readonly version: string;
  /** Of MySQL and MariaDB. */
  readonly insert?: InsertWay;
}

/**
 * The dialect of the server that answers.
 *
 * @throws DatabaseUnsupportedError
 */
export async function detectDialect(options: DataSource['options'], sql: DataSource | QueryRunner, names: TableNames): Promise<Dialect> {
  const server = await readServer(options, sql);
  for (const trouble of [versionTrouble(server), await charsetTrouble(server, sql)]) {
    if (trouble !== null) throw new DatabaseUnsupportedError(trouble);
  }
  if (options.type === 'postgres') {
    const { schema } = options;
    return postgresDialect(names, { schema, home: schema ?? (await homeOf(sql, names)), ownSessions: await hasOwnSession(sql) });
  }
  const isMysql = server.name === 'mysql' || server.name === 'mariadb';
  return dialectOf(server, options, names, isMysql ? await readKeyCollations(sql, names) : undefined);
}

/** @throws DatabaseUnsupportedError */
export async function readServer(options: DataSource['options'], sql: Sql): Promise<Server> {
  switch (options.type) {
    case 'mysql':
    case 'mariadb': {
      const version = await valueOf(sql, 'SELECT VERSION() AS version');
      const name = /mariadb/i.test(version) ? 'mariadb' : 'mysql';
      return { name, version, insert: await insertWay(sql, name) };
    }
    case 'postgres':
      return { name: 'postgres', version: await valueOf(sql, 'SHOW server_version') };
    case 'better-sqlite3':
    case 'sqljs':
      return { name: 'sqlite', version: '' };
    default:
      throw new DatabaseUnsupportedError(
        `The outbox works with MySQL, MariaDB, PostgreSQL and, in one process, SQLite, not with "${options.type}".`,
      );
  }
}

/** @param collations of the tables that are there, for who deletes from them */
export function dialectOf({ name, version, insert }: Server, options: DataSource['options'], names: TableNames, collations?: KeyCollations): Dialect {
  if (name === 'sqlite') return sqliteDialect(names);
  if (name === 'postgres') return postgresDialect(names, options.type === 'postgres' ? { schema: options.schema } : {});
  return mysqlDialect(name, names, {
    skipLocked: isAtLeast(version, SKIP_LOCKED[name]),
    noPad: isAtLeast(version, NO_PAD[name]),
    jsonTable: isAtLeast(version, JSON_TABLE[name]),
    insert,
    collations,
  });
}

async function insertWay(sql: Sql, name: 'mysql' | 'mariadb'): Promise<InsertWay> {
  // In the mode of that name MariaDB has its blocks written differently.
  if (name === 'mariadb') return /ORACLE/i.test(await valueOf(sql, 'SELECT @@SESSION.sql_mode')) ? 'statements' : 'block';
  return Number(await valueOf(sql, 'SELECT @@innodb_autoinc_lock_mode')) === 2 ? 'locking-insert' : 'statements';
}

/** What is wrong with the server's version; `null` when nothing is. */
export function versionTrouble({ name, version }: Server): string | null {
  if (name === 'sqlite' || isAtLeast(version, OLDEST[name])) return null;
  return `The outbox needs ${name} ${OLDEST[name].join('.')} or later; the server says ${version}.`;
}

/**
 * What is wrong with the connection's character set; `null` when nothing is. With another one the driver damages what is
 * beyond it, such as emoji, or the server refuses it row by row.
 */
export async function charsetTrouble({ name }: Server, sql: Sql): Promise<string | null> {
  if (name !== 'mysql' && name !== 'mariadb') return null;
  const charset = await valueOf(sql, 'SELECT @@SESSION.character_set_client AS charset');
  if (charset === 'utf8mb4') return null;
  return (
    `The connection's character set is ${charset}, which cannot carry every text. Set charset: 'utf8mb4_unicode_ci' on ` +
    'the data source, or leave charset out.'
  );
}

/** The schema that the search path finds the tables in, or would make them in. */
async function homeOf(sql: Sql, names: TableNames): Promise<string | undefined> {
  const found = `SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass('"${names.lane}"')`;
  return (await valueOf(sql, `SELECT COALESCE((${found}), current_schema())::text AS home`)) || undefined;
}

async function valueOf(sql: Sql, query: string): Promise<string> {
  const rows = (await sql.query(query)) as Record<string, string>[];
  return Object.values(rows[0] ?? {})[0] ?? '';
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
