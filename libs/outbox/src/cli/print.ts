/** Where a command writes. */
export interface Output {
  out(text: string): void;
  /** Progress and messages: never part of what is piped on. */
  err(text: string): void;
}

/** Columns as wide as what is in them. */
export function table(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const cells = [head, ...rows.map((row) => row.map(cell))];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? '').length)));
  return cells.map((row) => row.map((text, column) => (column === row.length - 1 ? text : text.padEnd(widths[column] ?? 0))).join('  ')).join('\n');
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '-';
  // One line for each row, and nothing that moves the cursor.
  return (value instanceof Date ? value.toISOString() : String(value)).replaceAll(/\p{Cc}+/gu, ' ');
}
