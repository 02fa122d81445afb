import type { Sql } from './dialect';
import { KEY_COLUMNS, type KeyColumn, type KeyedTable } from './key-deletes';
import type { TableNames } from './tables';

/** The collations that columns of keys have, by {@link placeOf}. Columns of bytes have none. */
export type KeyCollations = ReadonlyMap<string, string>;

const TEXT_SIZES: Readonly<Partial<Record<KeyColumn, number>>> = { topic: 249, message_key: 190, consumer: 100, message_id: 190, sequence_key: 190 };

/** What new tables have for a topic, whatever the server. */
const TOPIC_COLLATION = 'ascii_bin';

const placeOf = (table: string, column: string): string => `${table}.${column}`;

/**
 * The type of a column that is to be joined with one of a key. Collations must agree: servers refuse to compare two
 * columns with different ones, and a table keeps the one that it was made with when its server is upgraded or its rows
 * move to another.
 *
 * @param usual the collation of tables that are made now
 */
export function keyTypes(usual: string, collations: KeyCollations): (table: KeyedTable, column: KeyColumn) => string {
  return (table, column) => {
    const size = TEXT_SIZES[column];
    if (size === undefined) return column === 'lane' ? 'SMALLINT' : 'BIGINT';
    const collation = collations.get(placeOf(table, column)) ?? (column === 'topic' ? TOPIC_COLLATION : usual);
    return `VARCHAR(${size}) CHARACTER SET ${collation.split('_')[0]} COLLATE ${collation}`;
  };
}

/** Reads them. Tables that are not there yet have none. */
export async function readKeyCollations(sql: Sql, names: TableNames): Promise<KeyCollations> {
  const tables = Object.keys(KEY_COLUMNS) as KeyedTable[];
  const rows = (await sql.query(
    `SELECT TABLE_NAME AS name, COLUMN_NAME AS col, COLLATION_NAME AS collation FROM information_schema.COLUMNS
     WHERE TABLE_SCHEMA = DATABASE() AND COLLATION_NAME IS NOT NULL AND TABLE_NAME IN (${tables.map((table) => `'${names[table]}'`).join(', ')})`,
  )) as { name: string; col: string; collation: string }[];
  // Servers may write names of tables small.
  const tableOf = new Map(tables.map((table) => [names[table].toLowerCase(), table]));
  return new Map(rows.map(({ name, col, collation }) => [placeOf(tableOf.get(name.toLowerCase()) ?? name, col), collation]));
}
