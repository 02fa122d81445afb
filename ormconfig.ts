import { outboxMigrations } from 'nestjs-transactional-outbox';
import { DataSource } from 'typeorm';
import { Reservation } from './apps/inventory/src/reservation.entity.js';
import { StockItem } from './apps/inventory/src/stock-item.entity.js';
import { Order } from './apps/orders/src/order.entity.js';
import { CreateShopTables1764633600000 } from './apps/shop/src/create-shop-tables.migration.js';
import { databaseOptions } from './apps/shop/src/database.js';
import { readEnvironment } from './apps/shop/src/environment.js';

const databaseUrl = readEnvironment(process.env, (reader) => reader.databaseUrl());

/** The data source of the TypeORM command line: `DATABASE_URL=… npm run typeorm -- migration:run`. */
export const dataSource = new DataSource({
  ...databaseOptions(databaseUrl),
  entities: [Order, StockItem, Reservation],
  migrations: [...outboxMigrations(), CreateShopTables1764633600000],
});
