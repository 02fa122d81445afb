/** A statement that moves the transaction itself. */
export type TransactionCommand =
  | { readonly kind: 'begin' | 'commit' | 'rollback' }
  | { readonly kind: 'savepoint' | 'release' | 'rollback-to'; readonly name: string };

/** Blanks, empty statements and comments, such as those in which tracing tools hide the route. */
const PREFIX = /^(?:[\s;]|--[^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|\/\*(?!!)[\s\S]*?\*\/)+/;

/** END and ABORT are PostgreSQL's and SQLite's; BEGIN NOT ATOMIC is a block of MariaDB's. */
const COMMAND =
  /^(?:(BEGIN\b(?!\s+NOT\b)|START\s+TRANSACTION\b)|(COMMIT|END)\b|(SAVEPOINT)\b|(RELEASE)\b(?:\s+SAVEPOINT\b)?|(ROLLBACK|ABORT)\b(?:\s+(?:WORK|TRANSACTION))?(?:\s+(TO)\b(?:\s+SAVEPOINT\b)?)?)(?:\s*(?:`([^`]+)`|"([^"]+)"|([^\s;`"]+)))?/i;

export function parseTransactionCommand(sql: string): TransactionCommand | undefined {
  const match = COMMAND.exec(sql.replace(PREFIX, ''));
  if (!match) return undefined;
  const [, begin, commit, savepoint, , rollback, to, ticked, quoted, plain] = match;
  if (begin) return { kind: 'begin' };
  if (commit) return { kind: 'commit' };
  if (rollback && !to) return { kind: 'rollback' };
  const name = (ticked ?? quoted ?? plain ?? '').toLowerCase();
  return { kind: savepoint ? 'savepoint' : rollback ? 'rollback-to' : 'release', name };
}
