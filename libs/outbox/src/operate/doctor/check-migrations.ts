import { OUTBOX_MIGRATIONS } from '../../store/migration';
import type { Sql } from '../../store/dialect';
import { type Check, ok, warning } from './finding';

export const migrationsRecorded: Check = {
  id: 'migrations.recorded',
  async look({ sql, dataSource, dialect }) {
    const { migrationsTableName = 'migrations' } = dataSource.options;
    const schema = dataSource.options.type === 'postgres' ? dataSource.options.schema : undefined;
    const path = schema === undefined ? migrationsTableName : `${schema}.${migrationsTableName}`;
    const quote = dialect.name === 'mysql' || dialect.name === 'mariadb' ? '`' : '"';
    const table = path.split('.').map((part) => `${quote}${part}${quote}`).join('.');
    const recorded = await recordedIn(sql, table);
    const listed = dataSource.migrations.map(({ name, constructor }) => name ?? constructor.name);
    const ours: readonly string[] = OUTBOX_MIGRATIONS;
    const open = ours.filter((name) => listed.includes(name) && !recorded.includes(name));
    if (open.length > 0) return warning(`not run on this database, or not by TypeORM: ${open.join(', ')}`, 'Run the migrations: those of the outbox can run again, and make what is missing.');
    const done = ours.filter((name) => recorded.includes(name));
    return ok(done.length > 0 ? `${done.join(', ')} has run` : 'TypeORM knows of no migration of the outbox here: the tables were made in another way');
  },
};

async function recordedIn(sql: Sql, table: string): Promise<readonly string[]> {
  try {
    return ((await sql.query(`SELECT name AS name FROM ${table}`)) as { name: string }[]).map(({ name }) => name);
  } catch (error) {
    // Where it may not be read, it is not as if it were not there.
    if (error instanceof Error && /no such table|does not exist|doesn't exist/.test(error.message)) return [];
    throw error;
  }
}
