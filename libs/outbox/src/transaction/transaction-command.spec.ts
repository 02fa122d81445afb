import { expect, it } from 'vitest';
import { parseTransactionCommand } from './transaction-command';

it.each([
  ['COMMIT', { kind: 'commit' }],
  ['commit;', { kind: 'commit' }],
  ['  ROLLBACK', { kind: 'rollback' }],
  ['ROLLBACK WORK', { kind: 'rollback' }],
  ['SAVEPOINT typeorm_1', { kind: 'savepoint', name: 'typeorm_1' }],
  ['savepoint `Mine`', { kind: 'savepoint', name: 'mine' }],
  ['RELEASE SAVEPOINT a', { kind: 'release', name: 'a' }],
  ['RELEASE a', { kind: 'release', name: 'a' }],
  ['ROLLBACK TO a', { kind: 'rollback-to', name: 'a' }],
  ['ROLLBACK TO SAVEPOINT "a"', { kind: 'rollback-to', name: 'a' }],
  ['ROLLBACK WORK TO SAVEPOINT a;', { kind: 'rollback-to', name: 'a' }],
  ['ROLLBACK TRANSACTION TO SAVEPOINT a', { kind: 'rollback-to', name: 'a' }],
  ['SELECT 1', undefined],
  ['COMMITTED', undefined],
  ['INSERT INTO savepoint VALUES (1)', undefined],
])('%s', (sql, command) => {
  expect(parseTransactionCommand(sql)).toEqual(command);
});
