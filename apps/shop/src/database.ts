import type { DataSourceOptions } from 'typeorm';

/** TypeORM's options for `mysql://…`, `mariadb://…` or `postgres://…`. */
export function databaseOptions(url: string): DataSourceOptions {
  if (url.startsWith('mysql:')) return { type: 'mysql', url };
  if (url.startsWith('mariadb:')) return { type: 'mariadb', url };
  return { type: 'postgres', url };
}
