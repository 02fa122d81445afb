import { type Connection, inTransaction } from './connection';
import type { Sql } from './dialect';
import { driverCode } from './driver-code';
import type { LogPartition, Partitions } from './partitions';
import type { TableNames } from './tables';

/** How long a lock of the log is waited for: writers queue behind who waits. */
const PATIENCE = `SET LOCAL lock_timeout = '300ms'`;
/** Lock timeout, deadlock. */
const BUSY: ReadonlySet<unknown> = new Set(['55P03', '40P01']);

export interface PostgresLog {
  readonly tables: TableNames;
  /** Without schema and quotes. */
  readonly names: TableNames;
  readonly idSequence: string;
  quote(table: string): string;
}

export function postgresPartitions({ tables, names, idSequence, quote }: PostgresLog): Partitions {
  const log = tables.message;
  const tableOf = (partition: string): string => quote(`${names.message}_${partition}`);

  return {
    async list(sql: Sql): Promise<readonly LogPartition[]> {
      const rows = (await sql.query(
        `SELECT substr(c.relname, ${names.message.length + 2}) AS name, pg_get_expr(c.relpartbound, c.oid) AS bound
         FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_partitioned_table t ON t.partrelid = i.inhparent
         WHERE i.inhparent = to_regclass('${log.replaceAll("'", "''")}') AND t.partstrat = 'r'
           AND t.partattrs::text = (SELECT a.attnum::text FROM pg_attribute a WHERE a.attrelid = i.inhparent AND a.attname = 'id')`,
      )) as { name: string; bound: string }[];
      return rows.map(toPartition).sort(byIds);
    },

    // Writers do not wait for ATTACH, as they would for CREATE TABLE … PARTITION OF.
    add: (connection, partitions) =>
      inTransaction(connection, async () => {
        await connection.query(PATIENCE);
        for (const { name, from, below } of partitions) {
          await connection.query(`CREATE TABLE ${tableOf(name)} (LIKE ${log} INCLUDING ALL)`);
          await connection.query(`ALTER TABLE ${log} ATTACH PARTITION ${tableOf(name)} FOR VALUES FROM (${from}) TO (${below})`);
        }
      }),

    async moveIds(connection: Connection, to: bigint): Promise<void> {
      await connection.query(`SELECT setval('${idSequence.replaceAll("'", "''")}', ${to}) FROM ${idSequence} WHERE last_value < ${to}`);
    },

    drop: (connection, name, isFree) =>
      inTransaction(connection, async () => {
        await connection.query(PATIENCE);
        await connection.query(`LOCK TABLE ONLY ${log} IN ACCESS EXCLUSIVE MODE`);
        if (!(await isFree())) return false;
        await connection.query(`DROP TABLE ${tableOf(name)}`);
        return true;
      }),

    isBusy: (error) => BUSY.has(driverCode(error)),
  };
}

/** As PostgreSQL writes them: `FOR VALUES FROM (MINVALUE) TO ('10000000000')`, or `DEFAULT`. */
function toPartition({ name, bound }: { name: string; bound: string }): LogPartition {
  const [, from, below] = /FROM \('?([^')]+)'?\) TO \('?(\d+)'?\)/.exec(bound) ?? [];
  return { name, from: from === undefined || from === 'MINVALUE' ? null : BigInt(from), below: below === undefined ? null : BigInt(below) };
}

function byIds(one: LogPartition, other: LogPartition): number {
  if (one.below === other.below) return 0;
  return one.below !== null && (other.below === null || one.below < other.below) ? -1 : 1;
}
