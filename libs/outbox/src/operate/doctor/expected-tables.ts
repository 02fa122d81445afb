import type { Dialect } from '../../store/dialect';
import { type TableNames } from '../../store/tables';

export interface ExpectedColumn {
  readonly name: string;
  /** In small letters, as the migration writes it: `varchar(190)`. */
  readonly type: string;
  readonly nullable: boolean;
  /** `null` where it does not matter, or the type has none. */
  readonly collation: string | null;
  /** Whether the database gives its value. */
  readonly generated: boolean;
}

export interface ExpectedIndex {
  readonly kind: 'primary' | 'unique' | 'plain';
  readonly columns: readonly string[];
}

export interface ExpectedTable {
  readonly name: string;
  readonly columns: readonly ExpectedColumn[];
  readonly indexes: readonly ExpectedIndex[];
}

const TEXT_TYPE = /char|text/;

/**
 * The tables as the migration makes them, read from its own statements, so that there is one place that says what they
 * look like.
 */
export function expectedTables(dialect: Dialect, names: TableNames, partitioned: boolean): readonly ExpectedTable[] {
  const tables = new Map<string, { name: string; columns: ExpectedColumn[]; indexes: ExpectedIndex[] }>();
  const unquoted = new Map(Object.entries(dialect.tables).map(([table, quoted]) => [quoted as string, names[table as keyof TableNames]]));
  for (const made of dialect.createTables(1, partitioned)) {
    const [statement = ''] = made.split(/ PARTITION (?:BY|OF) /);
    const [, table, body, options] = /^CREATE TABLE IF NOT EXISTS (\S+) \((.*)\)([^()]*)$/s.exec(statement) ?? [];
    if (table !== undefined && body !== undefined) {
      const name = unquoted.get(table) ?? table;
      const read = { name, columns: [] as ExpectedColumn[], indexes: [] as ExpectedIndex[] };
      const tableCollation = /COLLATE (\w+)/.exec(options ?? '')?.[1] ?? null;
      for (const part of partsOf(body)) readPart(part, read, tableCollation, (other) => tables.get(unquoted.get(other) ?? other)?.columns ?? []);
      tables.set(name, read);
      continue;
    }
    const [, on, columns] = /^CREATE INDEX IF NOT EXISTS \S+ ON (\S+) \(([^)]*)\)$/.exec(statement) ?? [];
    if (on !== undefined && columns !== undefined) tables.get(unquoted.get(on) ?? on)?.indexes.push({ kind: 'plain', columns: listOf(columns) });
  }
  return [...tables.values()];
}

function readPart(
  part: string,
  table: { readonly columns: ExpectedColumn[]; readonly indexes: ExpectedIndex[] },
  tableCollation: string | null,
  columnsOf: (table: string) => readonly ExpectedColumn[],
): void {
  const [, key, listed] = /^(PRIMARY KEY|UNIQUE KEY \w+|UNIQUE|KEY \w+) \(([^)]*)\)$/.exec(part) ?? [];
  if (key !== undefined && listed !== undefined) {
    table.indexes.push({ kind: key.startsWith('PRIMARY') ? 'primary' : key.startsWith('UNIQUE') ? 'unique' : 'plain', columns: listOf(listed) });
    return;
  }
  const [, like] = /^LIKE (\S+)/.exec(part) ?? [];
  if (like !== undefined) {
    table.columns.push(...columnsOf(like).map((column) => ({ ...column, generated: false })));
    return;
  }
  const [, name, written, rest] = /^(\w+) (\w+(?:\(\d+\))?)(.*)$/s.exec(part) ?? [];
  if (name === undefined || written === undefined || rest === undefined) throw new Error(`The doctor cannot read ${part}.`);
  const type = written.toLowerCase();
  const collation = TEXT_TYPE.test(type) ? (/COLLATE "?(\w+)"?/.exec(rest)?.[1] ?? tableCollation) : null;
  const isKey = rest.includes('PRIMARY KEY');
  table.columns.push({ name, type, nullable: !isKey && !rest.includes('NOT NULL'), collation, generated: /AUTO_INCREMENT|GENERATED|nextval/.test(rest) });
  if (isKey) table.indexes.push({ kind: 'primary', columns: [name] });
  else if (rest.includes('UNIQUE')) table.indexes.push({ kind: 'unique', columns: [name] });
}

/** Cut at the commas that stand in no brackets. */
function partsOf(body: string): readonly string[] {
  const parts = [''];
  let depth = 0;
  for (const character of body) {
    if (character === '(') depth++;
    if (character === ')') depth--;
    if (character === ',' && depth === 0) parts.push('');
    else parts[parts.length - 1] += character;
  }
  return parts.map((part) => part.replaceAll(/\s+/g, ' ').trim()).filter((part) => part !== '');
}

function listOf(columns: string): readonly string[] {
  return columns.split(',').map((column) => column.trim());
}
