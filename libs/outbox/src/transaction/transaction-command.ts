/** A statement that moves the transaction itself. */
export type TransactionCommand =
  | { readonly kind: 'commit' | 'rollback' }
  | { readonly kind: 'savepoint' | 'release' | 'rollback-to'; readonly name: string };

const COMMAND =
  /^\s*(?:(COMMIT)\b|(SAVEPOINT)\b|(RELEASE)\b(?:\s+SAVEPOINT\b)?|(ROLLBACK)\b(?:\s+(?:WORK|TRANSACTION))?(?:\s+(TO)\b(?:\s+SAVEPOINT\b)?)?)(?:\s+[`"]?([^\s;`"]+)[`"]?)?/i;

export function parseTransactionCommand(sql: string): TransactionCommand | undefined {
  const match = COMMAND.exec(sql);
  if (!match) return undefined;
  const [, commit, savepoint, , rollback, to, name = ''] = match;
  if (commit) return { kind: 'commit' };
  if (rollback && !to) return { kind: 'rollback' };
  return { kind: savepoint ? 'savepoint' : rollback ? 'rollback-to' : 'release', name: name.toLowerCase() };
}
