import type { DataSource, QueryRunner } from 'typeorm';

/**
 * Whether each connection has a session of the server for itself. A pool such as PgBouncer greets with a number of its own,
 * even where it gives sessions out for as long as a connection lasts.
 */
export async function hasOwnSession(sql: DataSource | QueryRunner): Promise<boolean> {
  if (!('createQueryRunner' in sql)) return isGreetedByServer(sql);
  const queryRunner = sql.createQueryRunner('master');
  try {
    return await isGreetedByServer(queryRunner);
  } finally {
    await queryRunner.release();
  }
}

async function isGreetedByServer(queryRunner: QueryRunner): Promise<boolean> {
  const greeted: unknown = Reflect.get((await queryRunner.connect()) as object, 'processID');
  const rows = (await queryRunner.query('SELECT pg_backend_pid() AS id')) as { id: unknown }[];
  return typeof greeted === 'number' && greeted === Number(rows[0]?.id);
}
