import type { DataSource } from 'typeorm';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { SERVERS } from '../setup/databases';
import { freshDatabaseUrl } from './database-url';

/** The data source of TypeORM's command line, as it is when it reads the given URL. */
async function ormconfig(url: string): Promise<DataSource> {
  vi.stubEnv('DATABASE_URL', url);
  vi.resetModules();
  return (await import('../../ormconfig')).dataSource;
}

describe.each(SERVERS)('ormconfig.ts on %s', (name) => {
  const ends: (() => Promise<unknown>)[] = [];

  afterEach(async () => {
    vi.unstubAllEnvs();
    for (const end of ends.splice(0).toReversed()) await end();
  });

  it('has migrations that make what the entities say, and can be reverted', async () => {
    const { url, drop } = await freshDatabaseUrl(name);
    ends.push(drop);
    const dataSource = await (await ormconfig(url)).initialize();
    ends.push(() => dataSource.destroy());

    const names = ['CreateOutboxTables1764547200000', 'CreateShopTables1764633600000'];
    const run = await dataSource.runMigrations();
    expect(run.map((migration) => migration.name)).toEqual(expect.arrayContaining(names));
    expect(await dataSource.runMigrations()).toEqual([]);
    expect((await dataSource.driver.createSchemaBuilder().log()).upQueries).toEqual([]);

    for (const _ of run) await dataSource.undoLastMigration();
    const queryRunner = dataSource.createQueryRunner();
    expect(await queryRunner.hasTable('orders')).toBe(false);
    expect(await queryRunner.hasTable('outbox_message')).toBe(false);
    await queryRunner.release();
  });
});

it('ormconfig.ts names the variable that is missing', async () => {
  await expect(ormconfig('')).rejects.toThrow(/DATABASE_URL is missing/);
  vi.unstubAllEnvs();
});
