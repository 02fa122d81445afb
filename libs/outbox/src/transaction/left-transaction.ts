/**
 * Whether a result of MySQL or MariaDB says that the session is in no transaction any more. mysql2 gives the server's
 * status flags with each result that is not rows; flag 1 says "in a transaction".
 */
export function hasLeftTransaction(result: unknown): boolean {
  if (typeof result !== 'object' || result === null) return false;
  // Of a procedure with rows, and of several statements in one, the last result counts.
  if (Array.isArray(result)) return result.length > 0 && isHeader(result.at(-1)) && hasLeftTransaction(result.at(-1));
  // TypeORM's own kind of result, which query builders ask for.
  if ('raw' in result && 'records' in result) return hasLeftTransaction(result.raw);
  return 'serverStatus' in result && typeof result.serverStatus === 'number' && (result.serverStatus & 1) === 0;
}

/** No row has columns of these names. */
function isHeader(result: unknown): boolean {
  return typeof result === 'object' && result !== null && 'affectedRows' in result && 'warningStatus' in result;
}
