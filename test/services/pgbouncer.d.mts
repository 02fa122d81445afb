export interface PgBouncer {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  stop(): Promise<void>;
}

/**
 * PgBouncer before a database of PostgreSQL: installed, else Debian's. It offers the database three times, by the names of
 * the modes in which it pools: `session`, `transaction` and `statement`.
 */
export function startPgBouncer(target: { host: string; port: number; user: string; database: string }): Promise<PgBouncer>;
