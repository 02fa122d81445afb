import { describe, expect, it } from 'vitest';
import { KEY_COLUMNS } from '../../libs/outbox/src/store/key-deletes';
import { detectDialect } from '../../libs/outbox/src/store/detect-dialect';
import { mysqlDialect } from '../../libs/outbox/src/store/mysql.dialect';
import { OutboxStore } from '../../libs/outbox/src/store/outbox-store';
import { tableNames } from '../../libs/outbox/src/store/tables';
import { DATABASES, SERVERS } from '../setup/databases';
import { describeClaims } from './acceptance/claims';
import { describeCommitOrder } from './acceptance/commit-order';
import { describeConsumed } from './acceptance/consumed';
import { describeRefusals } from './acceptance/refusals';
import { describeStore } from './acceptance/store';
import { message, StoreFixture } from './fixture';

describe.each(DATABASES)('store on %s', (database) => {
  describeStore(database);
});

describe.each(DATABASES)('a refused message on %s', (database) => {
  describeRefusals(database);
});

describe.each(DATABASES)('consumed messages on %s', (database) => {
  describeConsumed(database);
});

describe.each(SERVERS)('claims side by side on %s', (database) => {
  describeClaims(database);
});

describe.each(SERVERS)('commit order on %s', (database) => {
  describeCommitOrder(database);
});

describe.each(['mysql', 'mariadb'] as const)('commit order on %s, written statement by statement', (database) => {
  describeCommitOrder(database, { adapt: () => mysqlDialect(database, tableNames({}), { insert: 'statements' }) });
});

// D11: an upgrade of the server leaves the tables as they are.
describe.each(['mysql', 'mariadb'] as const)('tables that an older server has made, on %s', (database) => {
  const madeBy = mysqlDialect(database, tableNames({}), { noPad: false });
  describeRefusals(database, { madeBy });
  describeConsumed(database, { madeBy });

  it('have rows deleted by their keys, whatever each column is', async () => {
    const f = await StoreFixture.open(database, 8, { madeBy });
    try {
      const made = f.store.dialect;
      // An operator has begun to convert them.
      await f.query(`ALTER TABLE ${f.tables.hold} CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci`);
      const mixed = await detectDialect(f.dataSource.options, f.dataSource, tableNames({}));
      for (const [table, by] of [['hold', mixed], ['held', made], ['consumed', made], ['failure', made]] as const) {
        const key = KEY_COLUMNS[table].map((column) => (column === 'lane' || column === 'id' ? 1 : `${column} é`));
        const { sql, parameters } = by.deleteByKey(table, [key]);
        const plan = await f.query<{ table: string; type: string }>(`EXPLAIN FORMAT=TRADITIONAL ${sql}`, parameters);
        expect(plan.find((row) => row.table === 't')?.type, table).toMatch(/eq_ref|const/);
      }
    } finally {
      await f.close();
    }
  });
});

describe('the way in which messages are written', () => {
  it('is by statements on a MariaDB that is set to be like Oracle', async () => {
    const f = await StoreFixture.open('mariadb', 8, { extra: { poolSize: 1 } as object });
    try {
      await f.query("SET SESSION sql_mode = 'ORACLE'");
      const store = new OutboxStore(await detectDialect(f.dataSource.options, f.dataSource, tableNames({})), 8, 'commit');
      await f.transaction((queryRunner) => store.add(queryRunner, [message(), message()]));
      expect(await f.count('pending')).toBe(2);
    } finally {
      await f.close();
    }
  });

  it('writes nothing without its lock on MySQL, and says so', async () => {
    const f = await StoreFixture.open('mysql');
    try {
      await f.query(`DELETE FROM ${f.tables.bucket}`);
      await expect(f.add(message())).rejects.toThrow(/has no row \d+/);
      expect(await f.count('message')).toBe(0);
    } finally {
      await f.close();
    }
  });
});
