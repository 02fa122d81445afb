import { type OutboxModuleOptions, outboxMigrations } from 'nestjs-transactional-outbox';
import type { DataSource } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { runCommand } from '../../libs/outbox/src/cli/program';
import { detectDialect } from '../../libs/outbox/src/store/detect-dialect';
import { tableNames } from '../../libs/outbox/src/store/tables';
import { until } from '../relay/fixture';
import { startApp, type TestApp } from '../setup/app';
import { freshDataSource, SERVERS } from '../setup/databases';
import { examine } from './doctor/examine';

const PARTITION = { mode: 'partition' } as const;

async function partitionsOf(dataSource: DataSource): Promise<string[]> {
  const { partitions } = await detectDialect(dataSource.options, dataSource, tableNames({}));
  return ((await partitions?.list(dataSource)) ?? []).map(({ name }) => name);
}

describe.each(SERVERS)('a partitioned log on %s', (database) => {
  const start = (partitioned: boolean, retention: OutboxModuleOptions['retention']): Promise<TestApp> =>
    startApp(database, { dataSource: { migrations: outboxMigrations({ partitioned }), migrationsRun: true }, outbox: { createTables: false, retention: retention ?? {} } });

  it('is asked for by the mode, and has its days when the app has started', async () => {
    await expect(start(false, PARTITION)).rejects.toMatchObject({ code: 'OUTBOX_PARTITIONS_MISSING', message: expect.stringContaining('partitioned: true') });
    const { dataSource, close } = await start(true, PARTITION);
    await until(async () => (await partitionsOf(dataSource)).length === 6);
    await close();
    const made = await startApp(database, { outbox: { retention: PARTITION } });
    await until(async () => (await partitionsOf(made.dataSource)).length === 6);
    await made.close();
  });

  it('takes the other modes, and stays as it is', async () => {
    const { dataSource, close } = await start(true, { mode: 'delete' });
    expect(await partitionsOf(dataSource)).toHaveLength(2);
    await close();
  });

  it('can be made, undone and made again', async () => {
    const { dataSource, close } = await freshDataSource(database, { migrations: outboxMigrations({ partitioned: true }) as never[] });
    await dataSource.runMigrations();
    await dataSource.undoLastMigration();
    await dataSource.runMigrations();
    await dataSource.query('DELETE FROM migrations');
    await dataSource.runMigrations();
    expect(await partitionsOf(dataSource)).toHaveLength(2);
    await close();
  });

  it('is well for the doctor', async () => {
    const { dataSource, close } = await freshDataSource(database, { migrations: outboxMigrations({ partitioned: true }) as never[] });
    await dataSource.runMigrations();
    const { wrong } = await examine(dataSource);
    expect(Object.keys(wrong).filter((check) => check.startsWith('tables.') || check.startsWith('migrations.'))).toEqual([]);
    await close();
  });

  it('is printed and cleaned on the command line', async () => {
    const said: string[] = [];
    const outbox = (...args: string[]): Promise<number> => runCommand(args, { out: (text) => said.push(text), err: (text) => said.push(text) });
    const { dataSource, close } = await freshDataSource(database);
    const url = new URL(process.env[`OUTBOX_${database.toUpperCase()}_URL`] ?? '');
    url.pathname = `/${String(dataSource.options.database)}`;
    expect(await outbox('migration', '--dialect', database, '--partitioned')).toBe(0);
    for (const statement of said.splice(0).join('').split(';\n')) if (statement.trim() !== '') await dataSource.query(statement);
    expect(await outbox('--url', url.href, 'purge', '--partitions', '--archive', '--reason', 'test')).toBe(2);
    expect(await outbox('--url', url.href, 'purge', '--partitions', '--reason', 'test')).toBe(0);
    expect(await partitionsOf(dataSource)).toHaveLength(5);
    await close();
  });
});

describe('a partitioned log on sqlite', () => {
  it('is refused, and so is the mode', async () => {
    await expect(startApp('sqlite', { outbox: { retention: PARTITION } })).rejects.toMatchObject({ code: 'OUTBOX_DATABASE_UNSUPPORTED' });
    const said: string[] = [];
    expect(await runCommand(['migration', '--dialect', 'sqlite', '--partitioned'], { out: (text) => said.push(text), err: (text) => said.push(text) })).toBe(2);
  });
});
