import type { Check } from './checklist.js';
import type { Paint } from './paint.js';

/** The checks as a table of plain text: claim, expected, seen, ok. */
export function renderTable(checks: readonly Check[], paint: Paint): string {
  const rows = checks.map(({ claim, expected, seen, holds }) => [claim, String(expected), String(seen), holds ? 'yes' : 'NO']);
  const head = ['claim', 'expected', 'seen', 'ok'];
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  ');
  const rule = widths.map((width) => '─'.repeat(width)).join('  ');
  return [
    paint.bold(line(head)),
    paint.dim(rule),
    ...rows.map((row, index) => (checks[index]?.holds ? line(row) : paint.red(line(row)))),
  ].join('\n');
}
