import { ORDER_BUCKETS } from '../../store/tables';
import { type ActualColumn, actualTables } from './actual-tables';
import type { ExpectedColumn, ExpectedIndex } from './expected-tables';
import { type Check, fault, judge, type Subject, type Trouble, warning } from './finding';

const MIGRATE = 'Add outboxMigrations() to the migrations of the data source and run them: they can run again, and make what is missing.';
const ALTER = 'Change it as `npx outbox migration` prints it; rows that are there keep what they say.';
/** Columns by which messages and keys are told apart. */
const TELL_APART: ReadonlySet<string> = new Set(['message_id', 'message_key', 'topic', 'consumer', 'sequence_key']);
/** From narrow to wide. */
const FAMILIES = [
  ['tinyint', 'smallint', 'mediumint', 'int', 'bigint'],
  ['tinytext', 'text', 'mediumtext', 'longtext'],
] as const;

export const tablesPresent: Check = {
  id: 'tables.present',
  async look(subject) {
    const needed = subject.expected.map(({ name }) => name);
    const there: ReadonlySet<string> = subject.dialect.name === 'sqlite'
      ? new Set(((await subject.sql.query(`SELECT name FROM sqlite_master WHERE type = 'table'`)) as { name: string }[]).map(({ name }) => name))
      : new Set((await actualTables(subject)).keys());
    const missing = needed.filter((name) => !there.has(name));
    return judge(`${needed.length} tables`, missing.length === 0 ? [] : [fault(`missing, or not to be seen by this user: ${missing.join(', ')}`, MIGRATE)]);
  },
};

export const tablesColumns: Check = {
  id: 'tables.columns',
  async look(subject) {
    const troubles: Trouble[] = [];
    let count = 0;
    await forEachTable(subject, (table, expected, actual) => {
      count += expected.columns.length;
      for (const column of expected.columns) {
        const found = actual.columns.find(({ name }) => name === column.name);
        const wrong = found ? wrongWith(column, found) : 'is missing';
        if (wrong !== null) troubles.push(fault(`${table}.${column.name} ${wrong}`, ALTER));
      }
      for (const { name, nullable, filled } of actual.columns) {
        if (expected.columns.some((column) => column.name === name) || nullable || filled) continue;
        troubles.push(fault(`${table}.${name} is none of the outbox's, and wants a value that nobody gives`, 'Give it a default, or let it be NULL.'));
      }
    });
    return judge(`${count} columns`, troubles);
  },
};

function wrongWith(expected: ExpectedColumn, actual: ActualColumn): string | null {
  if (!isAsWide(expected.type, actual.type)) return `is ${actual.type} instead of ${expected.type}`;
  if (expected.nullable && !actual.nullable) return 'must be able to be NULL';
  if (expected.generated && !actual.filled) return 'gets no value by itself';
  if (actual.touched) return 'changes with each update of the row';
  return null;
}

function isAsWide(expected: string, actual: string): boolean {
  if (expected === actual) return true;
  const [[base, width], [actualBase, actualWidth]] = [split(expected), split(actual)];
  // Bytes tell texts apart as well as a collation that does.
  const isText = base === actualBase || (base === 'varchar' && actualBase === 'varbinary');
  if (isText && /char|binary/.test(base)) return actualWidth >= width;
  return FAMILIES.some((family) => {
    const names: readonly string[] = family;
    return names.includes(base) && names.indexOf(actualBase) >= names.indexOf(base);
  });
}

function split(type: string): readonly [base: string, width: number] {
  const [, base = type, width = '0'] = /^(\w+)\((\d+)\)$/.exec(type) ?? [];
  return [base, Number(width)];
}

export const tablesCollations: Check = {
  id: 'tables.collations',
  async look(subject) {
    const troubles: Trouble[] = [];
    const isPostgres = subject.dialect.name === 'postgres';
    const seen = new Set<string>();
    await forEachTable(subject, (table, expected, actual) => {
      for (const { name, collation } of expected.columns) {
        const found = actual.columns.find((column) => column.name === name);
        if (collation === null || !found || found.collation === null) continue;
        if (TELL_APART.has(name)) seen.add(found.collation);
        const trouble = isPostgres ? postgresTrouble(name, collation, found) : mysqlTrouble(name, collation, found);
        if (trouble) troubles.push({ ...trouble, seen: `${table}.${name} ${trouble.seen}` });
      }
    });
    return judge(`ids and keys compare byte for byte (${[...seen].toSorted().join(', ')})`, troubles);
  },
};

function mysqlTrouble(name: string, collation: string, found: ActualColumn): Trouble | null {
  // Each process has read at its start how columns compare.
  const convert = `Convert the column to ${collation}, as \`npx outbox migration\` prints it, and start the app and its relays again.`;
  const charset = collation.split('_')[0];
  if (TELL_APART.has(name) && found.collation !== collation) {
    return fault(`is ${found.collation}, which takes ${found.blurred ? "'a' and 'A'" : "'a' and 'a ', or another character set's texts,"} for the same`, convert);
  }
  if (!found.collation?.startsWith(`${charset}_`)) return fault(`is ${found.collation}, which cannot hold every text`, convert);
  return null;
}

function postgresTrouble(name: string, collation: string, found: ActualColumn): Trouble | null {
  const convert = `ALTER TABLE … ALTER COLUMN ${name} TYPE … COLLATE "${collation}".`;
  if (!TELL_APART.has(name)) return null;
  if (found.blurred) return fault(`is collated by ${found.collation}, which takes different texts for the same`, convert);
  if (found.collation === collation) return null;
  return warning(`is collated by ${found.collation}: an upgrade of the operating system may change its order, and its indexes are wrong then`, convert);
}

export const tablesIndexes: Check = {
  id: 'tables.indexes',
  async look(subject) {
    const troubles: Trouble[] = [];
    await forEachTable(subject, (table, expected, actual) => {
      for (const index of expected.indexes) {
        if (actual.indexes.some((found) => serves(index, found))) continue;
        const what = `${table} has no ${index.kind === 'plain' ? 'index' : `${index.kind} key`} on (${index.columns.join(', ')})`;
        const why = index.kind === 'plain' ? 'Without it the outbox grows slow.' : 'Without it messages are not told apart, or rows are locked that should not be.';
        troubles.push((index.kind === 'plain' ? warning : fault)(what, `${why} ${ALTER}`));
      }
    });
    return judge('keys and indexes are as the migration makes them', troubles);
  },
};

function serves(expected: ExpectedIndex, found: { readonly unique: boolean; readonly primary: boolean; readonly columns: readonly string[] }): boolean {
  const begins = expected.columns.every((column, place) => found.columns[place] === column);
  if (expected.kind === 'plain') return begins;
  return begins && found.columns.length === expected.columns.length && (expected.kind === 'primary' ? found.primary : found.unique);
}

export const tablesStorage: Check = {
  id: 'tables.storage',
  async look(subject) {
    const wanted = subject.dialect.name === 'postgres' ? 'permanent' : 'InnoDB';
    const troubles: Trouble[] = [];
    await forEachTable(subject, (table, _, { storage }) => {
      if (storage !== wanted) troubles.push(fault(`${table} is ${storage}`, wanted === 'InnoDB' ? 'ALTER TABLE … ENGINE=InnoDB: others have no transactions.' : 'ALTER TABLE … SET LOGGED: a crash empties it.'));
    });
    return judge(wanted, troubles);
  },
};

export const tablesLanes: Check = {
  id: 'tables.lanes',
  async look({ sql, dialect: { name, tables }, lanes: wanted }) {
    const rows = (await sql.query(`SELECT lane AS lane FROM ${tables.lane} ORDER BY lane`)) as { lane: number | string }[];
    const troubles: Trouble[] = [];
    const fill = 'Take the relays and writers out, and put the rows in again: their numbers begin at 0, without a gap.';
    if (rows.length === 0 || rows.some(({ lane }, place) => Number(lane) !== place)) troubles.push(fault(`the ${rows.length} lanes are not 0, 1, 2, …`, fill));
    else if (wanted !== undefined && wanted !== rows.length) troubles.push(fault(`${rows.length} lanes, and the options say ${wanted}`, `Set lanes: ${rows.length} in the options: the number is fixed at migration.`));
    if (name === 'mysql' || name === 'mariadb') {
      const [bucket] = (await sql.query(`SELECT COUNT(*) AS n, MIN(bucket) AS low, MAX(bucket) AS high FROM ${tables.bucket}`)) as Record<string, number | string | null>[];
      const [n, low, high] = [bucket?.['n'], bucket?.['low'], bucket?.['high']].map(Number);
      if (n !== ORDER_BUCKETS || low !== 0 || high !== ORDER_BUCKETS - 1) troubles.push(fault(`${n} order buckets instead of ${ORDER_BUCKETS}: keys of those that are missing lose the order of commits`, fill));
    }
    return judge(`${rows.length} lanes`, troubles);
  },
};

type Visit = (table: string, expected: Subject['expected'][number], actual: NonNullable<ReturnType<Awaited<ReturnType<typeof actualTables>>['get']>>) => void;

/** Those that are there: what is missing is another check's word. */
async function forEachTable(subject: Subject, visit: Visit): Promise<void> {
  const actual = await actualTables(subject);
  if (actual.size === 0) throw new Error('none of the tables is there');
  for (const expected of subject.expected) {
    const found = actual.get(expected.name);
    if (found) visit(expected.name, expected, found);
  }
}
