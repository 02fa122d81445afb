import type { MigrationInterface, QueryRunner } from 'typeorm';
import { DatabaseUnsupportedError } from '../errors';
import { detectDialect } from './detect-dialect';
import type { Dialect, Sql } from './dialect';
import { laneCount, type SchemaOptions, tableNames } from './tables';

/** The names by which TypeORM remembers the outbox's migrations. */
export const OUTBOX_MIGRATIONS = ['CreateOutboxTables1764547200000'] as const;

export interface MigrationOptions extends SchemaOptions {
  /**
   * Makes the log partitioned, for `retention: { mode: 'partition' }`. It has no effect on a log that is there already.
   * Not on SQLite. Default false.
   */
  readonly partitioned?: boolean;
}

/**
 * The migrations that make the outbox's tables, for the `migrations` of a TypeORM data source:
 *
 * ```ts
 * migrations: [...outboxMigrations(), 'dist/migrations/*.js']
 * ```
 *
 * Each can run again after half a failure.
 *
 * @throws OutboxOptionsError; DatabaseUnsupportedError when they run where there are no partitions
 */
export function outboxMigrations(options: MigrationOptions = {}): (new () => MigrationInterface)[] {
  const names = tableNames(options);
  const lanes = laneCount(options);

  class CreateOutboxTables1764547200000 implements MigrationInterface {
    readonly name = OUTBOX_MIGRATIONS[0];

    async up(queryRunner: QueryRunner): Promise<void> {
      await createTables(queryRunner, await detectDialect(queryRunner.connection.options, queryRunner, names), lanes, options.partitioned);
    }

    async down(queryRunner: QueryRunner): Promise<void> {
      const dialect = await detectDialect(queryRunner.connection.options, queryRunner, names);
      for (const statement of dialect.dropTables()) await queryRunner.query(statement);
    }
  }
  return [CreateOutboxTables1764547200000];
}

/** @throws DatabaseUnsupportedError when there are no partitions */
export async function createTables(sql: Sql, dialect: Dialect, lanes: number, partitioned = false): Promise<void> {
  if (partitioned && !dialect.partitions) throw new DatabaseUnsupportedError('SQLite has no partitions: leave `partitioned` out.');
  for (const statement of dialect.createTables(lanes, partitioned)) await sql.query(statement);
}
