import type { Subject } from './finding';

export type Settings = ReadonlyMap<string, string>;

/** What the server says of these settings, as this session has them; those that it does not know are left out. */
export async function settingsOf({ sql, dialect }: Subject, names: readonly string[]): Promise<Settings> {
  const listed = names.map((name) => `'${name}'`).join(', ');
  const rows = (await sql.query(
    dialect.name === 'postgres'
      ? `SELECT name AS name, setting AS value FROM pg_settings WHERE name IN (${listed})`
      : `SHOW VARIABLES WHERE Variable_name IN (${listed})`,
  )) as { name?: string; Variable_name?: string; value?: string; Value?: string }[];
  return new Map(rows.map((row) => [row.name ?? row.Variable_name ?? '', row.value ?? row.Value ?? '']));
}

/** As they stand in configurations. */
export function show(settings: Settings): string {
  return [...settings].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([name, value]) => `${name}=${value}`).join(', ');
}

export function isOn(value: string | undefined): boolean {
  return value !== undefined && !['', '0', 'OFF', 'NO', 'FALSE'].includes(value.toUpperCase());
}
