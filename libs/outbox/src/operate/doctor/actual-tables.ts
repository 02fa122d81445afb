import type { TableNames } from '../../store/tables';
import type { Subject } from './finding';

export interface ActualColumn {
  readonly name: string;
  /** In small letters and in the words of the migration: `varchar(190)`. */
  readonly type: string;
  readonly nullable: boolean;
  readonly collation: string | null;
  /** Whether the collation may take different texts for the same. */
  readonly blurred: boolean;
  /** Whether the database gives its value, or has one where none is given. */
  readonly filled: boolean;
  /** Whether the database changes it by itself with each update. */
  readonly touched: boolean;
}

export interface ActualIndex {
  readonly unique: boolean;
  readonly primary: boolean;
  readonly columns: readonly string[];
}

export interface ActualTable {
  /** The engine on MySQL and MariaDB, the persistence on PostgreSQL. */
  readonly storage: string;
  readonly columns: readonly ActualColumn[];
  readonly indexes: readonly ActualIndex[];
}

/** What the catalogue says of the outbox's tables, by name; those that are not there are left out. */
export function actualTables(subject: Subject): Promise<ReadonlyMap<string, ActualTable>> {
  return subject.dialect.name === 'postgres' ? ofPostgres(subject) : ofMysql(subject);
}

interface TableRow {
  readonly tab: string;
  readonly storage: string;
}

interface ColumnRow {
  readonly tab: string;
  readonly name: string;
  readonly type: string;
  readonly nullable: string | boolean;
  readonly collation: string | null;
  readonly filled: boolean | number | string;
  readonly extra: string;
}

interface IndexRow {
  readonly tab: string;
  readonly name: string;
  readonly uniq: boolean | number | string;
  readonly prim: boolean | number | string;
  readonly columns: string;
}

async function ofMysql({ sql, names }: Subject): Promise<ReadonlyMap<string, ActualTable>> {
  const ours = `TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN (${Object.values(names).map((name) => `'${name}'`).join(', ')})`;
  const tables = (await sql.query(`SELECT TABLE_NAME AS tab, COALESCE(ENGINE, 'none') AS storage FROM information_schema.TABLES WHERE ${ours}`)) as TableRow[];
  // MariaDB calls the default of a column that has none NULL, by this word.
  const columns = (await sql.query(
    `SELECT TABLE_NAME AS tab, COLUMN_NAME AS name, COLUMN_TYPE AS type, IS_NULLABLE AS nullable, COLLATION_NAME AS collation,
      (COALESCE(COLUMN_DEFAULT, 'NULL') <> 'NULL' OR EXTRA LIKE '%auto_increment%' OR EXTRA LIKE '%GENERATED%') AS filled, EXTRA AS extra
     FROM information_schema.COLUMNS WHERE ${ours} ORDER BY ORDINAL_POSITION`,
  )) as ColumnRow[];
  // A column of which only the beginning is in the index is none that the index knows.
  const indexes = (await sql.query(
    `SELECT TABLE_NAME AS tab, INDEX_NAME AS name, MAX(NON_UNIQUE = 0) AS uniq, MAX(INDEX_NAME = 'PRIMARY') AS prim,
      GROUP_CONCAT(CASE WHEN SUB_PART IS NULL THEN COLUMN_NAME ELSE CONCAT(COLUMN_NAME, '(', SUB_PART, ')') END ORDER BY SEQ_IN_INDEX) AS columns
     FROM information_schema.STATISTICS WHERE ${ours} GROUP BY TABLE_NAME, INDEX_NAME`,
  )) as IndexRow[];
  return gather(names, tables, columns, indexes, {
    // Older servers tell how wide a number is shown.
    typeOf: (type) => type.replace(/^((?:tiny|small|medium|big)?int)\(\d+\)/, '$1').replace(' unsigned', ''),
    isBlurred: ({ collation }) => collation !== null && !collation.endsWith('_bin'),
  });
}

async function ofPostgres({ sql, names, dialect }: Subject): Promise<ReadonlyMap<string, ActualTable>> {
  const ours = `c.oid IN (${Object.values(dialect.tables).map((table) => `to_regclass('${String(table).replaceAll("'", "''")}')`).join(', ')})`;
  const tables = (await sql.query(
    `SELECT c.relname AS tab, CASE c.relpersistence WHEN 'p' THEN 'permanent' WHEN 'u' THEN 'unlogged' ELSE 'temporary' END AS storage FROM pg_class c WHERE ${ours}`,
  )) as TableRow[];
  const columns = (await sql.query(
    `SELECT c.relname AS tab, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable,
      o.collname AS collation, (a.atthasdef OR a.attidentity <> '') AS filled,
      CASE WHEN o.collisdeterministic IS FALSE THEN 'blurred' ELSE '' END AS extra
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_collation o ON o.oid = a.attcollation
     WHERE ${ours} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
  )) as ColumnRow[];
  const indexes = (await sql.query(
    `SELECT c.relname AS tab, i.indexrelid::text AS name, i.indisunique AS uniq, i.indisprimary AS prim,
      (SELECT string_agg(a.attname, ',' ORDER BY k.place) FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY AS k(attnum, place)
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum) AS columns
     FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid WHERE ${ours} AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL`,
  )) as IndexRow[];
  return gather(names, tables, columns, indexes, {
    typeOf: (type) => WORDS.reduce((written, [theirs, ours]) => written.replace(theirs, ours), type),
    isBlurred: ({ extra }) => extra === 'blurred',
  });
}

/** How PostgreSQL calls types, and how the migration does. */
const WORDS = [
  [/^character varying/, 'varchar'],
  [/^character/, 'char'],
  [/^integer$/, 'int'],
  [/^timestamp(.*) without time zone$/, 'timestamp$1'],
] as const;

function gather(
  names: TableNames,
  tables: readonly TableRow[],
  columns: readonly ColumnRow[],
  indexes: readonly IndexRow[],
  { typeOf, isBlurred }: { typeOf(type: string): string; isBlurred(column: ColumnRow): boolean },
): ReadonlyMap<string, ActualTable> {
  const found = new Map<string, ActualTable>();
  for (const name of Object.values(names) as string[]) {
    // Some servers keep names of tables in small letters.
    const isOurs = ({ tab }: { readonly tab: string }): boolean => tab === name || tab === name.toLowerCase();
    const table = tables.find(isOurs);
    if (!table) continue;
    found.set(name, {
      storage: table.storage,
      columns: columns.filter(isOurs).map((column) => ({
        name: column.name,
        type: typeOf(column.type.toLowerCase()),
        nullable: column.nullable === true || column.nullable === 'YES',
        collation: column.collation,
        blurred: isBlurred(column),
        filled: Boolean(Number(column.filled)),
        touched: /on update/i.test(column.extra),
      })),
      indexes: indexes.filter(isOurs).map(({ uniq, prim, columns: listed }) => ({
        unique: Boolean(Number(uniq)),
        primary: Boolean(Number(prim)),
        columns: (listed ?? '').split(','),
      })),
    });
  }
  return found;
}
