import { type MigrationInterface, type QueryRunner, Table, type TableColumnOptions } from 'typeorm';

/** Written with TypeORM's Table API, so that the same migration runs on MySQL, MariaDB and PostgreSQL. */
export class CreateShopTables1764633600000 implements MigrationInterface {
  readonly name = 'CreateShopTables1764633600000';

  async up(queryRunner: QueryRunner): Promise<void> {
    for (const table of tables(queryRunner)) await queryRunner.createTable(table, true);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const table of tables(queryRunner).toReversed()) await queryRunner.dropTable(table, true);
  }
}

function tables(queryRunner: QueryRunner): Table[] {
  // The type and default that this database has for @CreateDateColumn().
  const { createDate, createDateDefault, createDatePrecision } = queryRunner.connection.driver.mappedDataTypes;
  return [
    new Table({
      name: 'orders',
      columns: [
        { name: 'id', type: 'varchar', length: '36', isPrimary: true },
        text('productId', 64),
        number('quantity'),
        text('status', 16),
        {
          name: 'createdAt',
          type: String(createDate),
          default: createDateDefault,
          ...(createDatePrecision === undefined ? {} : { precision: createDatePrecision }),
        },
      ],
    }),
    new Table({
      name: 'stock_item',
      columns: [{ ...text('productId', 64), isPrimary: true }, number('available'), number('reserved')],
    }),
    new Table({
      name: 'reservation',
      columns: [
        { name: 'orderId', type: 'varchar', length: '36', isPrimary: true },
        text('productId', 64),
        number('quantity'),
        text('status', 16),
      ],
    }),
  ];
}

function text(name: string, length: number): TableColumnOptions {
  return { name, type: 'varchar', length: String(length) };
}

function number(name: string): TableColumnOptions {
  return { name, type: 'int' };
}
