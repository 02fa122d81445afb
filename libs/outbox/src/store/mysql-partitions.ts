import type { Connection } from './connection';
import type { Sql } from './dialect';
import { driverCode, waitedInVain } from './driver-code';
import type { LogPartition, Partitions } from './partitions';

const REST = 'p_rest';
/** Seconds that a lock of the log is waited for: writers queue behind who waits. Less is not to be had. */
const PATIENCE = 1;

/**
 * @param log the log's quoted name
 * @param name the same without quotes
 */
export function mysqlPartitions(log: string, name: string): Partitions {
  return {
    async list(sql: Sql): Promise<readonly LogPartition[]> {
      const rows = (await sql.query(
        `SELECT p.PARTITION_NAME AS name, p.PARTITION_DESCRIPTION AS below FROM information_schema.PARTITIONS p
         WHERE p.TABLE_SCHEMA = DATABASE() AND p.TABLE_NAME = '${name}' AND p.PARTITION_METHOD = 'RANGE' AND REPLACE(p.PARTITION_EXPRESSION, '\`', '') = 'id'
         ORDER BY p.PARTITION_ORDINAL_POSITION`,
      )) as { name: string; below: string }[];
      let from: bigint | null = null;
      return rows.map((row) => {
        const below = row.below === 'MAXVALUE' ? null : BigInt(row.below);
        const partition = { name: row.name, from: below === null ? null : from, below };
        from = below;
        return partition;
      });
    },

    add: (connection, partitions) =>
      locked(connection, log, async () => {
        const parts = partitions.map(({ name: part, below }) => `PARTITION ${part} VALUES LESS THAN (${below})`);
        await connection.query(`ALTER TABLE ${log} REORGANIZE PARTITION ${REST} INTO (${parts.join(', ')}, PARTITION ${REST} VALUES LESS THAN MAXVALUE)`);
      }),

    async moveIds(connection: Connection, to: bigint): Promise<void> {
      // The counter keeps what a row had that was rolled back. ALTER TABLE … AUTO_INCREMENT would lock the log.
      await connection.begin();
      try {
        await connection.query(
          `INSERT INTO ${log} (id, message_id, aggregate_type, aggregate_id, event_type, topic, created_at, updated_at)
           VALUES (${to}, '', '', '', '', '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))`,
        );
      } catch (error) {
        // The id is taken: they have moved.
        if (driverCode(error) !== 'ER_DUP_ENTRY') throw error;
      } finally {
        await connection.rollback();
      }
    },

    drop: (connection, partition, isFree) =>
      locked(connection, log, async () => {
        if (!(await isFree())) return false;
        await connection.query(`ALTER TABLE ${log} DROP PARTITION ${partition}`);
        return true;
      }),

    isBusy: waitedInVain,
  };
}

/** Has the log alone. With a second table in the list relays could deadlock with it, and would be the ones to fail. */
async function locked<T>(connection: Connection, log: string, work: () => Promise<T>): Promise<T> {
  const rows = (await connection.query('SELECT @@SESSION.lock_wait_timeout AS seconds')) as { seconds: number | string }[];
  await connection.query(`SET SESSION lock_wait_timeout = ${PATIENCE}`);
  try {
    await connection.query(`LOCK TABLES ${log} WRITE`);
    return await work();
  } finally {
    // A connection that cannot say it is lost, and its locks with it.
    await connection.query('UNLOCK TABLES').catch(() => undefined);
    await connection.query(`SET SESSION lock_wait_timeout = ${Number(rows[0]?.seconds)}`).catch(() => undefined);
  }
}
