import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { DataSource, type DataSourceOptions } from 'typeorm';
import type { TableNames } from '../store/tables';
import { Failure } from './failure';
import { loadFile } from './load-file';

/** How the command line finds the database. */
export interface Source {
  readonly dataSource?: string;
  readonly url?: string;
  readonly tables?: string;
}

const TABLES_WANTED = `--tables must be an object of JSON, such as '{"message":"my_outbox"}'.`;

/** The database that is meant, open. The schema is left alone, whatever the data source says. */
export async function openDataSource(source: Source): Promise<DataSource> {
  return connect(await findDataSource(source));
}

/** How many lanes the tables were made for; `undefined` without tables: the store's own check says so, and what to do. */
export async function laneCountOf(dataSource: DataSource, table: string): Promise<number | undefined> {
  const rows = (await dataSource.query(`SELECT COUNT(*) AS n FROM ${table}`).catch(() => [])) as { n: number | string }[];
  return Number(rows[0]?.n ?? 0) || undefined;
}

/** Other names of the tables, as `--tables` gives them. */
export function tablesOf({ tables: json }: Source): Partial<TableNames> {
  if (json === undefined) return {};
  const names = parsed(json);
  if (typeof names !== 'object' || names === null || Array.isArray(names)) throw new Failure(TABLES_WANTED, 2);
  return names;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (cause) {
    throw new Failure(TABLES_WANTED, 2, { cause });
  }
}

async function findDataSource({ dataSource: file, url }: Source): Promise<DataSource> {
  if (file !== undefined && url !== undefined) throw new Failure('Give --data-source or --url, not both.', 2);
  if (file !== undefined) return fromFile(file);
  if (url === undefined) throw new Failure('Which database? Give --data-source <file>, --url <url> or the environment variable DATABASE_URL.', 2);
  return new DataSource(optionsOf(url));
}

async function fromFile(file: string): Promise<DataSource> {
  const path = resolve(file);
  if (!existsSync(path)) throw new Failure(`There is no file ${path}.`, 2);
  const module = await loadFile(path);
  // An app may have another copy of TypeORM: what looks like a data source is one.
  const values = [module, module['default']].flatMap((exports) => (typeof exports === 'object' && exports !== null ? Object.values(exports) : [])).concat(module['default']);
  const found = values.find((value): value is DataSource => typeof value === 'object' && value !== null && 'options' in value && 'initialize' in value);
  if (!found) throw new Failure(`${path} exports no data source of TypeORM.`, 2);
  return found;
}

function optionsOf(url: string): DataSourceOptions {
  const [, scheme] = /^(sqlite(?=:)|[a-z]+(?=:\/\/))/.exec(url) ?? [];
  if (scheme === 'mysql' || scheme === 'mariadb') return { type: scheme, url };
  if (scheme === 'postgres' || scheme === 'postgresql') return { type: 'postgres', url };
  if (scheme === 'sqlite') return sqliteOptions(url.slice('sqlite:'.length));
  throw new Failure('--url must begin with mysql://, mariadb://, postgres:// or sqlite:.', 2);
}

/** Neither the file nor its folder is made: who looks for an outbox has mistaken the name then. */
function sqliteOptions(path: string): DataSourceOptions {
  if (!existsSync(path)) throw new Failure(`There is no file ${path === '' ? 'named in --url: give sqlite:<file>' : path}.`, 2);
  return { type: 'better-sqlite3', database: path, fileMustExist: true };
}

async function connect(dataSource: DataSource): Promise<DataSource> {
  if (dataSource.isInitialized) return dataSource;
  // An operator looks and repairs; what the app does to its schema when it starts is not for here.
  dataSource.setOptions({ synchronize: false, migrationsRun: false, dropSchema: false });
  try {
    return await dataSource.initialize();
  } catch (cause) {
    throw new Failure(`The database cannot be reached: ${cause instanceof Error ? cause.message || String(Reflect.get(cause, 'code')) : String(cause)}`, 1, { cause });
  }
}
