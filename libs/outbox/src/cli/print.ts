/** Where a command writes. */
export interface Output {
  out(text: string): void;
  /** Progress and messages: never part of what is piped on. */
  err(text: string): void;
  /** Only where that is a terminal: writes over the line that it has written before; nothing clears it. */
  readonly rewrite?: ((text: string) => void) | undefined;
}

/** Columns as wide as what is in them. */
export function table(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const cells = [head, ...rows.map((row) => row.map(cell))];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? '').length)));
  return cells.map((row) => row.map((text, column) => (column === row.length - 1 ? text : text.padEnd(widths[column] ?? 0))).join('  ')).join('\n');
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '-';
  return oneLine(value instanceof Date ? value.toISOString() : String(value));
}

/** What moves the cursor of a terminal, gives it orders, or turns the direction of reading. */
const ORDERS = String.raw`\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069`;
const OF_A_LINE = new RegExp(`[${ORDERS}]+`, 'gu');
const OF_A_TEXT = new RegExp(`(?!\\n)[${ORDERS}]`, 'gu');

/** One line, whatever is in it: messages and the answers of servers say what others have written. */
export function oneLine(text: string): string {
  return text.replaceAll(OF_A_LINE, ' ');
}

/** The same for several lines. */
export function printable(text: string): string {
  return text.replaceAll(OF_A_TEXT, ' ');
}

/** JSON that a terminal shows and does not obey. */
export function toJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(OF_A_TEXT, (order) => `\\u${order.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
