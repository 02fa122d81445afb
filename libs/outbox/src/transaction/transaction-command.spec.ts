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
  ['COMMIT AND CHAIN', { kind: 'commit' }],
  ['END', { kind: 'commit' }],
  ['ABORT', { kind: 'rollback' }],
  ['begin', { kind: 'begin' }],
  ['START  TRANSACTION READ ONLY', { kind: 'begin' }],
  ['BEGIN NOT ATOMIC SELECT 1; END', undefined],
  ['/* route=a */ -- b\n # c\n SAVEPOINT a', { kind: 'savepoint', name: 'a' }],
  ['ROLLBACK TO "my point"', { kind: 'rollback-to', name: 'my point' }],
  ['SAVEPOINT`a`', { kind: 'savepoint', name: 'a' }],
  ['/* COMMIT */ SELECT 1', undefined],
  ['ENDPOINT', undefined],
  [';COMMIT', { kind: 'commit' }],
  ['SELECT 1', undefined],
  ['COMMITTED', undefined],
  ['INSERT INTO savepoint VALUES (1)', undefined],
])('%s', (sql, command) => {
  expect(parseTransactionCommand(sql)).toEqual(command);
});
