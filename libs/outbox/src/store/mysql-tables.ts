import { IDS_PER_DAY } from './partitions';
import { ORDER_BUCKETS, SENT_AT, type TableNames } from './tables';

/** Keys compare byte for byte: utf8mb4_bin takes 'a' and 'a ' for the same. */
export function collationOf(name: 'mysql' | 'mariadb', noPad: boolean): string {
  if (!noPad) return 'utf8mb4_bin';
  return name === 'mysql' ? 'utf8mb4_0900_bin' : 'utf8mb4_nopad_bin';
}

/** What is made besides names. */
export interface MysqlTables {
  readonly collation: string;
  readonly noPad: boolean;
  readonly lanes: number;
  /** Whether the log is partitioned. */
  readonly partitioned: boolean;
}

export function createTables(tables: TableNames, { collation, noPad, lanes, partitioned }: MysqlTables): readonly string[] {
  const engine = `ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE ${collation}`;
  const topic = 'VARCHAR(249) CHARACTER SET ascii COLLATE ascii_bin NOT NULL';
  // An id that is taken for another with a blank more would be skipped as a repeat: then rather bytes.
  const exact = (characters: number): string => (noPad ? `VARCHAR(${characters})` : `VARBINARY(${4 * characters})`);
  return [
    `CREATE TABLE IF NOT EXISTS ${tables.message} (
      id BIGINT NOT NULL AUTO_INCREMENT,
      ${messageColumns(topic)},
      sent_at DATETIME(6) GENERATED ALWAYS AS (${SENT_AT}) VIRTUAL,
      PRIMARY KEY (id),
      ${partitioned ? 'KEY ix_message_id' : 'UNIQUE KEY uq_message_id'} (message_id)
    ) ${engine}${partitioned ? PARTITIONS : ''}`,
    `CREATE TABLE IF NOT EXISTS ${tables.pending} (
      lane SMALLINT NOT NULL, id BIGINT NOT NULL, bytes INT NOT NULL, PRIMARY KEY (lane, id)
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.lane} (
      lane SMALLINT NOT NULL PRIMARY KEY, paused SMALLINT NOT NULL DEFAULT 0
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.bucket} (bucket SMALLINT NOT NULL PRIMARY KEY) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.hold} (
      lane SMALLINT NOT NULL, topic ${topic}, message_key VARCHAR(190) NOT NULL, retry_at DATETIME(6) NOT NULL,
      state VARCHAR(10) NOT NULL, PRIMARY KEY (lane, topic, message_key), KEY ix_retry_at (lane, retry_at)
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.held} (
      lane SMALLINT NOT NULL, topic ${topic}, message_key VARCHAR(190) NOT NULL, id BIGINT NOT NULL, bytes INT NOT NULL,
      PRIMARY KEY (lane, topic, message_key, id)
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.settled} (
      id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, settled_at DATETIME(6) NOT NULL, ids MEDIUMTEXT NOT NULL
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.dead} (
      id BIGINT NOT NULL PRIMARY KEY, lane SMALLINT NOT NULL, topic ${topic}, message_key VARCHAR(190) NOT NULL
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.consumed} (
      consumer ${exact(100)} NOT NULL, message_id ${exact(190)} NOT NULL, consumed_at DATETIME(6) NOT NULL,
      dead SMALLINT NOT NULL DEFAULT 0, PRIMARY KEY (consumer, message_id), KEY ix_consumed_at (consumed_at)
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.failure} (
      consumer ${exact(100)} NOT NULL, message_id ${exact(190)} NOT NULL, attempts INT NOT NULL,
      updated_at DATETIME(6) NOT NULL, PRIMARY KEY (consumer, message_id), KEY ix_updated_at (updated_at)
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.sequence} (
      consumer VARCHAR(100) NOT NULL, sequence_key VARCHAR(190) NOT NULL, last_place BIGINT NOT NULL,
      updated_at DATETIME(6) NOT NULL, PRIMARY KEY (consumer, sequence_key)
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.history} (
      id BIGINT NOT NULL,
      ${messageColumns(topic)},
      sent_at DATETIME(6) NULL,
      archived_at DATETIME(6) NOT NULL,
      PRIMARY KEY (id), KEY ix_archived_at (archived_at)
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.audit} (
      id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, act VARCHAR(40) NOT NULL, acted_by VARCHAR(190) NOT NULL, reason VARCHAR(500) NOT NULL,
      target TEXT NOT NULL, outcome VARCHAR(10) NOT NULL, result TEXT NULL, began_at DATETIME(6) NOT NULL, ended_at DATETIME(6) NULL
    ) ${engine}`,
    `CREATE TABLE IF NOT EXISTS ${tables.auditMessage} (
      audit_id BIGINT NOT NULL, id BIGINT NOT NULL, PRIMARY KEY (audit_id, id), KEY ix_id (id)
    ) ${engine}`,
    ...fillOnce(tables.lane, 'lane', lanes),
    ...fillOnce(tables.bucket, 'bucket', ORDER_BUCKETS),
  ];
}

/** The first partition takes all ids until there are others. */
const PARTITIONS = ` PARTITION BY RANGE (id) (
      PARTITION p_first VALUES LESS THAN (${IDS_PER_DAY}), PARTITION p_rest VALUES LESS THAN MAXVALUE
    )`;

/** The columns of a message in the log and in the history, but for the id and the time when it was sent. */
function messageColumns(topic: string): string {
  return `message_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
      aggregate_type VARCHAR(249) NOT NULL,
      aggregate_id VARCHAR(190) NOT NULL,
      message_key VARCHAR(190) NULL,
      tenant_id VARCHAR(190) NULL,
      traceparent VARCHAR(190) NULL,
      correlation_id VARCHAR(190) NULL,
      causation_id VARCHAR(190) NULL,
      event_type VARCHAR(190) NOT NULL,
      topic ${topic},
      headers MEDIUMTEXT NULL,
      payload MEDIUMTEXT NULL,
      status TINYINT NOT NULL DEFAULT 0,
      retry_count INT NOT NULL DEFAULT 0,
      next_retry_at DATETIME(6) NULL,
      last_error TEXT NULL,
      created_at DATETIME(6) NOT NULL,
      updated_at DATETIME(6) NOT NULL`;
}

/** Fills a table of numbers, unless it has rows: another number of lanes must not be mixed in. */
function fillOnce(table: string, column: string, count: number): readonly string[] {
  const numbers = Array.from({ length: count }, (_, index) => `SELECT ${index} AS n`).join(' UNION ALL ');
  return [
    `INSERT INTO ${table} (${column}) SELECT n FROM (${numbers}) numbers ` +
      `WHERE NOT EXISTS (SELECT 1 FROM (SELECT 1 FROM ${table} LIMIT 1) filled)`,
  ];
}
