import { charsetTrouble, versionTrouble } from '../../store/detect-dialect';
import { type Check, fault, judge, ok, warning } from './finding';
import { isOn, settingsOf, show } from './settings';

const LANE_LOCKS = {
  'skip-locked': 'lanes are locked with SKIP LOCKED',
  'named-locks': 'lanes are locked by name: it has no SKIP LOCKED',
  'advisory-locks': 'lanes are locked by advisory locks',
  none: 'one process, one connection',
} as const;

export const serverVersion: Check = {
  id: 'server.version',
  async look({ server, dialect }) {
    const trouble = versionTrouble(server);
    return judge(`${`${server.name} ${server.version}`.trim()}; ${LANE_LOCKS[dialect.laneLocks]}`, trouble === null ? [] : [fault(trouble, 'Upgrade the server.')]);
  },
};

export const connectionCharset: Check = {
  id: 'connection.charset',
  async look(subject) {
    const { server, sql, dialect } = subject;
    if (dialect.name === 'postgres') {
      const settings = await settingsOf(subject, ['server_encoding', 'client_encoding']);
      const isWhole = [...settings.values()].every((encoding) => encoding === 'UTF8');
      return judge(show(settings), isWhole ? [] : [fault(show(settings), 'Make the database with ENCODING UTF8, and leave client_encoding at it: others cannot carry every text.')]);
    }
    const trouble = await charsetTrouble(server, sql);
    return judge('utf8mb4', trouble === null ? [] : [fault(trouble, "Set charset: 'utf8mb4_unicode_ci' on the data source, or leave charset out.")]);
  },
};

const READ_ONLY = ['read_only', 'super_read_only', 'innodb_read_only', 'transaction_read_only', 'tx_read_only', 'default_transaction_read_only', 'in_hot_standby'];

export const serverWritable: Check = {
  id: 'server.writable',
  // A read-only transaction would answer for itself.
  outside: true,
  async look(subject) {
    const readOnly = [...(await settingsOf(subject, READ_ONLY))].filter(([, value]) => isOn(value)).map(([name, value]) => `${name}=${value}`);
    if (subject.dialect.name === 'postgres') {
      const [row] = (await subject.sql.query('SELECT pg_is_in_recovery() AS standby')) as { standby: boolean }[];
      if (row?.standby) readOnly.push('pg_is_in_recovery()');
    }
    return judge('it takes writes', readOnly.length === 0 ? [] : [fault(`it takes no writes: ${readOnly.join(', ')}`, 'Connect to the primary; after a failover, look which one it is.')]);
  },
};

export const serverDurabilityMysql: Check = {
  id: 'server.durability',
  async look(subject) {
    const settings = await settingsOf(subject, ['innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'log_bin', 'sync_binlog']);
    const [redo] = (await subject.sql.query(`SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'`)) as { Value: string }[];
    const troubles = [];
    const flush = settings.get('innodb_flush_log_at_trx_commit');
    if (flush !== undefined && flush !== '1') troubles.push(fault(`innodb_flush_log_at_trx_commit=${flush}`, 'Set innodb_flush_log_at_trx_commit=1: a crash loses committed events, some of them published already.'));
    if (redo?.Value === 'OFF') troubles.push(fault('the redo log is off', 'ALTER INSTANCE ENABLE INNODB REDO_LOG: a crash loses everything.'));
    // DETECT_ONLY notices a torn page, and cannot mend it.
    if (['OFF', '0', 'DETECT_ONLY'].includes(settings.get('innodb_doublewrite') ?? 'ON')) troubles.push(warning(`innodb_doublewrite=${settings.get('innodb_doublewrite')}`, 'Set innodb_doublewrite=ON, unless the file system never tears a page.'));
    if (isOn(settings.get('log_bin')) && settings.get('sync_binlog') !== '1') troubles.push(warning(`sync_binlog=${settings.get('sync_binlog')} with a binary log`, 'Set sync_binlog=1 where replicas or Debezium read the binary log: a crash makes them differ.'));
    return judge(show(settings), troubles);
  },
};

export const serverDurabilityPostgres: Check = {
  id: 'server.durability',
  async look(subject) {
    const settings = await settingsOf(subject, ['fsync', 'synchronous_commit', 'full_page_writes']);
    const troubles = [];
    if (!isOn(settings.get('fsync'))) troubles.push(fault('fsync=off', 'Set fsync=on: a crash of the host loses or corrupts what was committed.'));
    if (!isOn(settings.get('synchronous_commit'))) troubles.push(fault('synchronous_commit=off', 'Set synchronous_commit=on, for the users of app and relay too: a crash loses committed events, some of them published already.'));
    if (!isOn(settings.get('full_page_writes'))) troubles.push(warning('full_page_writes=off', 'Set full_page_writes=on, unless the file system never tears a page.'));
    return judge(show(settings), troubles);
  },
};

export const serverIsolationMysql: Check = {
  id: 'server.isolation',
  async look(subject) {
    const settings = await settingsOf(subject, ['log_bin', 'binlog_format']);
    const isRefused = isOn(settings.get('log_bin')) && settings.get('binlog_format') === 'STATEMENT';
    return judge('it writes at READ COMMITTED', isRefused ? [fault('with binlog_format=STATEMENT InnoDB refuses to write at READ COMMITTED (error 1665)', 'Set binlog_format=ROW: relays and cleaners work at READ COMMITTED.')] : []);
  },
};

export const singleWriterMysql: Check = {
  id: 'server.single-writer',
  async look(subject) {
    const settings = await settingsOf(subject, ['wsrep_on', 'group_replication_single_primary_mode']);
    const advice = 'Send all writers and relays to one node: locks of lanes and of order do not reach the others.';
    const troubles = [];
    if (isOn(settings.get('wsrep_on'))) troubles.push(warning('a node of a Galera cluster', advice));
    if (settings.get('group_replication_single_primary_mode') === 'OFF') {
      const members = (await subject.sql.query(`SELECT MEMBER_HOST AS host FROM performance_schema.replication_group_members WHERE MEMBER_STATE <> 'OFFLINE'`)) as unknown[];
      if (members.length > 0) troubles.push(warning('a member of a replication group with several primaries', advice));
    }
    return judge('one node writes, as far as it can be seen from here', troubles);
  },
};

/** What separates a commit from its id elsewhere, the outbox takes as it is; it tells of several writers, though. */
export const idsMysql: Check = {
  id: 'server.ids',
  async look(subject) {
    const settings = await settingsOf(subject, ['auto_increment_increment', 'auto_increment_offset', 'innodb_autoinc_lock_mode']);
    const step = settings.get('auto_increment_increment');
    return judge(show(settings), step === '1' ? [] : [warning(`ids come in steps of ${step}, as where several servers write`, 'The outbox can do with steps; if several servers write, send all writers and relays to one of them.')]);
  },
};

export const idsPostgres: Check = {
  id: 'server.ids',
  async look({ sql, dialect: { tables } }) {
    const table = `'${tables.message.replaceAll("'", "''")}'`;
    const [row] = (await sql.query(
      `SELECT s.seqrelid::regclass::text AS name, s.seqcache::text AS cache, s.seqincrement::text AS step, s.seqcycle AS cycle,
        (COALESCE(pg_sequence_last_value(s.seqrelid::regclass), 0) < (SELECT COALESCE(MAX(m.id), 0) FROM ${tables.message} m)) AS behind
       FROM pg_sequence s WHERE s.seqrelid = pg_get_serial_sequence(${table}, 'id')::regclass`,
    )) as { name: string; cache: string; step: string; cycle: boolean; behind: boolean }[];
    if (!row) return warning('the ids of the log come from no sequence of its own', 'Make the column as `npx outbox migration` prints it.');
    const troubles = [];
    if (row.cache !== '1') troubles.push(fault(`each session keeps ${row.cache} ids of ${row.name} for itself: they do not follow the order of commits`, `ALTER SEQUENCE ${row.name} CACHE 1.`));
    if (!/^[1-9]/.test(row.step) || row.cycle) troubles.push(fault(`${row.name} does not only go up`, `ALTER SEQUENCE ${row.name} INCREMENT BY 1 NO CYCLE.`));
    if (row.behind) troubles.push(fault(`${row.name} is behind the ids of the log`, `SELECT setval('${row.name}', (SELECT MAX(id) FROM ${tables.message})): sequences are not replicated, nor copied with data.`));
    return judge(`${row.name} CACHE ${row.cache}, INCREMENT ${row.step}`, troubles);
  },
};

export const serverDurabilitySqlite: Check = {
  id: 'server.durability',
  async look({ sql }) {
    const [row] = (await sql.query('PRAGMA synchronous')) as { synchronous: number }[];
    return row?.synchronous === 0 ? fault('synchronous=OFF', 'PRAGMA synchronous = FULL: a crash of the host loses or corrupts what was committed.') : ok(`synchronous=${row?.synchronous}`);
  },
};
