import { groupBy } from '../event/group-by';
import type { Dialect } from './dialect';
import type { TableNames } from './tables';

/** Tables that rows are deleted from by primary key, with its columns. */
export const KEY_COLUMNS = {
  message: ['id'],
  pending: ['lane', 'id'],
  hold: ['lane', 'topic', 'message_key'],
  held: ['lane', 'topic', 'message_key', 'id'],
  settled: ['id'],
  dead: ['id'],
  consumed: ['consumer', 'message_id'],
  failure: ['consumer', 'message_id'],
  sequence: ['consumer', 'sequence_key'],
  history: ['id'],
  audit: ['id'],
  auditMessage: ['audit_id', 'id'],
} as const satisfies Partial<Record<keyof TableNames, readonly KeyColumn[]>>;

export type KeyColumn = 'lane' | 'topic' | 'message_key' | 'id' | 'consumer' | 'message_id' | 'sequence_key' | 'audit_id';
export type KeyedTable = keyof typeof KEY_COLUMNS;
/** A primary key, in the order of its columns. */
export type Key = readonly (string | number)[];

export interface Statement {
  readonly sql: string;
  readonly parameters: string[];
}

/** Most values of one IN list: MariaDB makes a subquery of a longer one, and may then read the whole table. */
const VALUES_PER_LIST = 500;

/**
 * The condition that a row, called `t`, is one of those with the given keys.
 *
 * @param idIn the condition that a column is one of many ids
 */
export function hasKey(table: KeyedTable, keys: readonly Key[], idIn: Dialect['idIn'] = isOneOf): Statement {
  const columns: readonly KeyColumn[] = KEY_COLUMNS[table];
  const parameters: string[] = [];
  const value = (column: KeyColumn | undefined, given: string | number | undefined): string => {
    if (column === 'lane' || column === 'id' || column === 'audit_id') return String(given);
    parameters.push(String(given));
    return '?';
  };
  const groups = groupBy(keys, (key) => key.slice(0, -1).join('\u0000')).values();
  const conditions = [...groups].map((group) => {
    const first = group[0] ?? [];
    const prefix = columns.slice(0, -1).map((column, index) => `t.${column} = ${value(column, first[index])} AND `);
    const last = columns.at(-1);
    const isLast = last === 'id' ? idIn : isOneOf;
    return `(${prefix.join('')}${isLast(`t.${last}`, group.map((key) => value(last, key.at(-1))))})`;
  });
  return { sql: `(${conditions.join(' OR ')})`, parameters };
}

/** By lists of values. */
export function isOneOf(column: string, values: readonly string[]): string {
  const lists: string[] = [];
  for (let start = 0; start < values.length; start += VALUES_PER_LIST) {
    lists.push(`${column} IN (${values.slice(start, start + VALUES_PER_LIST).join(', ')})`);
  }
  return lists.length === 1 ? (lists[0] ?? '') : `(${lists.join(' OR ')})`;
}
