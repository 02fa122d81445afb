import { type Dialect, laneHasWork, type Patience, quotedTables, type Sql } from './dialect';
import { driverCode, waitedInVain } from './driver-code';
import { messageInProgress } from './message-in-progress';
import { hasKey, isOneOf, type Key, KEY_COLUMNS, type KeyedTable, type Statement } from './key-deletes';
import { type HeadLimits, headsByUnion, type LaneHead } from './lane-heads';
import { INSERTS, type InsertWay } from './mysql-insert';
import { type KeyCollations, keyTypes } from './mysql-key-types';
import { mysqlPartitions } from './mysql-partitions';
import { collationOf, createTables } from './mysql-tables';
import type { TableNames } from './tables';

/** What servers differ in; by default as new ones are. */
export interface MysqlCapabilities {
  /** MySQL 8.0.1, MariaDB 10.6. Without it lanes are locked by name. */
  readonly skipLocked?: boolean | undefined;
  /** A collation that compares trailing blanks: MySQL 8.0.17, every supported MariaDB. */
  readonly noPad?: boolean | undefined;
  /** MySQL 8.0.4, MariaDB 10.6. Without it relays may deadlock now and then, which costs a repeated batch. */
  readonly jsonTable?: boolean | undefined;
  /** How new messages are written. */
  readonly insert?: InsertWay | undefined;
  /** Collations of the tables that are there. */
  readonly collations?: KeyCollations | undefined;
}

/** MySQL 5.7 and later, and MariaDB 10.2 and later. */
export function mysqlDialect(
  name: 'mysql' | 'mariadb',
  names: TableNames,
  { skipLocked = true, noPad = true, jsonTable = true, insert = 'statements', collations = new Map() }: MysqlCapabilities = {},
): Dialect {
  const tables = quotedTables(names, (table) => `\`${table}\``);
  const now = 'UTC_TIMESTAMP(6)';
  const keyType = keyTypes(collationOf(name, noPad), collations);
  const withPatience = async (sql: Sql, patience: Patience, insert: string, parameters: unknown[]): Promise<void> => {
    const send = (prefix = ''): Promise<unknown> => sql.query(`${prefix}${insert}`, parameters);
    if (patience === 'wait') await send();
    else if (name === 'mariadb') await send('SET STATEMENT innodb_lock_wait_timeout = 0 FOR ');
    else await withShortestWait(sql, send);
  };
  // Names of locks are one space for the whole server: other databases, and other outboxes in this one.
  const lockName = (lane: number | string): string => `CONCAT(LEFT(SHA2(CONCAT(DATABASE(), '.${names.lane}'), 256), 40), '.', ${lane})`;

  return {
    name,
    tables,
    laneLocks: skipLocked ? 'skip-locked' : 'named-locks',
    forUpdateSkipLocked: skipLocked ? 'FOR UPDATE SKIP LOCKED' : 'FOR UPDATE',
    now,
    nowPlusMs: 'UTC_TIMESTAMP(6) + INTERVAL (? * 1000) MICROSECOND',
    epochMs: (column) => `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', ${column}) DIV 1000`,
    idIn: isOneOf,
    idText: (column) => `CAST(${column} AS CHAR)`,
    bind: (sql) => sql,
    createTables: (lanes, partitioned = false) => createTables(tables, { collation: collationOf(name, noPad), noPad, lanes, partitioned }),
    partitions: mysqlPartitions(tables.message, names.message),
    lastId: 'LAST_INSERT_ID()',
    dropTables: () => Object.values(tables).map((table) => `DROP TABLE IF EXISTS ${table}`),

    insertMessages: (sql, messages, buckets) => INSERTS[insert](sql, tables, messages, buckets),

    async lockLanes(sql: Sql, first: number, end: number, limit: number): Promise<readonly number[]> {
      const lanes = (count: number): string =>
        `SELECT l.lane AS lane FROM ${tables.lane} l WHERE l.lane >= ${first} AND l.lane < ${end} ` +
        `AND ${laneHasWork({ tables, now })} ORDER BY l.lane LIMIT ${count}`;
      if (skipLocked) return laneNumbers(await sql.query(`${lanes(limit)} FOR UPDATE SKIP LOCKED`));
      const candidates = laneNumbers(await sql.query(lanes(end - first)));
      const locked: number[] = [];
      for (const lane of candidates) {
        if (locked.length === limit) break;
        const rows = (await sql.query(`SELECT GET_LOCK(${lockName(lane)}, 0) AS locked`)) as { locked: unknown }[];
        if (Number(rows[0]?.locked) === 1) locked.push(lane);
      }
      return locked;
    },

    readHeads(sql: Sql, lanes: readonly number[], limits: HeadLimits): Promise<readonly LaneHead[]> {
      return headsByUnion(sql, this, lanes, limits);
    },

    async waitForLanes(sql: Sql, lanes: readonly number[]): Promise<void> {
      // One by one: of several the server might make a scan, and wait for others too.
      for (const lane of lanes) {
        if (skipLocked) {
          await sql.query(`SELECT l.lane FROM ${tables.lane} l WHERE l.lane = ${lane} FOR UPDATE`);
          continue;
        }
        const rows = (await sql.query(`SELECT GET_LOCK(${lockName(lane)}, @@SESSION.lock_wait_timeout) AS locked`)) as { locked: unknown }[];
        if (Number(rows[0]?.locked) !== 1) throw new Error(`The lock of lane ${lane} was not to be had.`);
      }
    },

    async unlockLanes(sql: Sql, lanes: readonly number[]): Promise<void> {
      if (skipLocked || lanes.length === 0) return;
      await sql.query(`SELECT ${lanes.map((lane) => `RELEASE_LOCK(${lockName(lane)})`).join(', ')}`);
    },

    async lockCleaner(sql: Sql): Promise<boolean> {
      const rows = (await sql.query(`SELECT GET_LOCK(${lockName("'cleaner'")}, 0) AS locked`)) as { locked: unknown }[];
      return Number(rows[0]?.locked) === 1;
    },

    deleteByKey(table: KeyedTable, keys: readonly Key[], condition?: string): Statement {
      const and = condition === undefined ? '' : ` AND ${condition}`;
      if (!jsonTable) {
        const { sql, parameters } = hasKey(table, keys);
        return { sql: `DELETE t FROM ${tables[table]} t WHERE ${sql}${and}`, parameters };
      }
      // An index hint does not keep a DELETE from a scan; joined in this order it can only look up.
      const columns = KEY_COLUMNS[table].map((column, index) => `${column} ${keyType(table, column)} PATH '$[${index}]'`);
      const joined = KEY_COLUMNS[table].map((column) => `t.${column} = k.${column}`);
      return {
        sql:
          `DELETE t FROM JSON_TABLE(?, '$[*]' COLUMNS (${columns.join(', ')})) k STRAIGHT_JOIN ${tables[table]} t ` +
          `FORCE INDEX (PRIMARY) ON ${joined.join(' AND ')} WHERE 1 = 1${and}`,
        parameters: [JSON.stringify(keys)],
      };
    },
    updateByKey: (table) => `UPDATE ${table} t FORCE INDEX (PRIMARY)`,
    replaceHold: 'ON DUPLICATE KEY UPDATE retry_at = VALUES(retry_at), state = VALUES(state)',

    sessionSettings(timeoutMs: number): readonly string[] {
      const seconds = Math.ceil(timeoutMs / 1000);
      // The last two: a lock that others hold, be it for an ALTER TABLE, is waited for no longer than the rest.
      const timeouts = ['wait_timeout', 'net_write_timeout', 'net_read_timeout', 'lock_wait_timeout', 'innodb_lock_wait_timeout'];
      return [
        'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
        `SET SESSION autocommit = 1, ${timeouts.map((timeout) => `SESSION ${timeout} = ${seconds}`).join(', ')}`,
      ];
    },

    // Older MariaDB servers have the variable only under its first name, newer MySQL servers only under its second.
    isolationQuery: `SELECT @@SESSION.${name === 'mariadb' ? 'tx_isolation' : 'transaction_isolation'}`,

    commitSignal: null,

    preparePool(): void {
      // Nothing is missing.
    },
    tableSizes:
      'SELECT t.TABLE_NAME AS name, t.TABLE_ROWS AS n, t.DATA_LENGTH + t.INDEX_LENGTH AS bytes FROM information_schema.TABLES t ' +
      `WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME IN (${Object.values(names).map((table) => `'${table}'`).join(', ')})`,

    quit(connection: unknown): void {
      // What a pooled connection of mysql2 calls `end` only gives it back to the pool.
      const { _removeFromPool: leave, _realEnd: end } = connection as { _removeFromPool?: () => void; _realEnd?: () => void };
      if (!leave || !end) return this.abandon(connection);
      leave.call(connection);
      end.call(connection);
    },

    abandon(connection: unknown): void {
      (connection as { destroy(): void }).destroy();
    },

    // With BETWEEN MariaDB sorts the whole lane.
    laneIs: (column, lane) => `${column} = ${lane}`,

    unionAll: (queries) => queries.map((query) => `(${query})`).join(' UNION ALL '),

    async insertConsumed(sql: Sql, consumer: string, messageId: string, patience: Patience): Promise<boolean> {
      const insert = `INSERT INTO ${tables.consumed} (consumer, message_id, consumed_at) VALUES (?, ?, ${now})`;
      try {
        await withPatience(sql, patience, insert, [consumer, messageId]);
        return true;
      } catch (error) {
        // Not INSERT IGNORE: it would take other faults for a repeat. A duplicate undoes only its statement.
        if (driverCode(error) === 'ER_DUP_ENTRY') return false;
        throw waitedInVain(error) ? messageInProgress(consumer, messageId, error) : error;
      }
    },

    async insertConsumedBatch(
      sql: Sql,
      consumer: string,
      messageIds: readonly string[],
      patience: Patience,
    ): Promise<readonly string[]> {
      const known = (await sql.query(
        `SELECT message_id FROM ${tables.consumed} WHERE consumer = ? AND message_id IN (${messageIds.map(() => '?').join(', ')})`,
        [consumer, ...messageIds],
      )) as { message_id: string | Buffer }[];
      // Where ids are bytes, buffers arrive.
      const seen = new Set(known.map((row) => String(row.message_id)));
      const fresh = messageIds.filter((id) => !seen.has(id));
      if (fresh.length === 0) return fresh;
      const insert = `INSERT INTO ${tables.consumed} (consumer, message_id, consumed_at) VALUES ${fresh.map(() => `(?, ?, ${now})`).join(', ')}`;
      try {
        await withPatience(sql, patience, insert, fresh.flatMap((id) => [consumer, id]));
        return fresh;
      } catch (error) {
        // A copy of one of them has been recorded since the look: a look in another transaction will see it.
        const isOvertaken = driverCode(error) === 'ER_DUP_ENTRY' || waitedInVain(error);
        throw isOvertaken ? messageInProgress(consumer, `${fresh[0]} or another of its batch`, error) : error;
      }
    },

    async advanceSequence(sql: Sql, consumer: string, key: string, place: string): Promise<string> {
      // An insert that finds its row locks it for writing at once; an UPDATE that finds none would lock a gap.
      await sql.query(
        `INSERT INTO ${tables.sequence} (consumer, sequence_key, last_place, updated_at) VALUES (?, ?, ?, ${now})
         ON DUPLICATE KEY UPDATE last_place = GREATEST(last_place, VALUES(last_place)), updated_at = ${now}`,
        [consumer, key, place],
      );
      const rows = (await sql.query(
        `SELECT CAST(last_place AS CHAR) AS place FROM ${tables.sequence} WHERE consumer = ? AND sequence_key = ? FOR UPDATE`,
        [consumer, key],
      )) as { place: string }[];
      return rows[0]?.place ?? place;
    },

    async countFailure(sql: Sql, consumer: string, messageId: string): Promise<number> {
      await sql.query(
        `INSERT INTO ${tables.failure} (consumer, message_id, attempts, updated_at) VALUES (?, ?, 1, ${now})
         ON DUPLICATE KEY UPDATE attempts = attempts + 1, updated_at = ${now}`,
        [consumer, messageId],
      );
      const rows = (await sql.query(
        `SELECT attempts FROM ${tables.failure} WHERE consumer = ? AND message_id = ?`,
        [consumer, messageId],
      )) as { attempts: number }[];
      return rows[0]?.attempts ?? 1;
    },
  };
}

/** MySQL has no INSERT that does not wait: a second is the least. */
async function withShortestWait(sql: Sql, send: () => Promise<unknown>): Promise<void> {
  // COALESCE: the session's own setting, also when a deadlock has kept an earlier call from putting it back.
  await sql.query(
    'SET @outbox_wait = COALESCE(@outbox_wait, @@SESSION.innodb_lock_wait_timeout), SESSION innodb_lock_wait_timeout = 1',
  );
  const putBack = (): Promise<unknown> => sql.query('SET SESSION innodb_lock_wait_timeout = @outbox_wait');
  try {
    await send();
  } catch (error) {
    await putBack().catch(() => undefined);
    throw error;
  }
  await putBack();
}

function laneNumbers(rows: unknown): readonly number[] {
  return (rows as { lane: number }[]).map(({ lane }) => Number(lane));
}
