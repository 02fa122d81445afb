import type { MigrationInterface, QueryRunner } from 'typeorm';
import { detectDialect } from './detect-dialect';
import type { Dialect, Sql } from './dialect';
import { laneCount, type SchemaOptions, tableNames } from './tables';

/** The names by which TypeORM remembers the outbox's migrations. */
export const OUTBOX_MIGRATIONS = ['CreateOutboxTables1764547200000'] as const;

/**
 * The migrations that make the outbox's tables, for the `migrations` of a TypeORM data source:
 *
 * ```ts
 * migrations: [...outboxMigrations(), 'dist/migrations/*.js']
 * ```
 *
 * Each can run again after half a failure.
 *
 * @throws OutboxOptionsError
 */
export function outboxMigrations(options: SchemaOptions = {}): (new () => MigrationInterface)[] {
  const names = tableNames(options);
  const lanes = laneCount(options);

  class CreateOutboxTables1764547200000 implements MigrationInterface {
    readonly name = OUTBOX_MIGRATIONS[0];

    async up(queryRunner: QueryRunner): Promise<void> {
      await createTables(queryRunner, await detectDialect(queryRunner.connection.options, queryRunner, names), lanes);
    }

    async down(queryRunner: QueryRunner): Promise<void> {
      const dialect = await detectDialect(queryRunner.connection.options, queryRunner, names);
      for (const statement of dialect.dropTables()) await queryRunner.query(statement);
    }
  }
  return [CreateOutboxTables1764547200000];
}

export async function createTables(sql: Sql, dialect: Dialect, lanes: number): Promise<void> {
  for (const statement of dialect.createTables(lanes)) await sql.query(statement);
}
