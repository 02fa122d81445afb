import type { Dialect } from '../../store/dialect';
import { packetMysql, serverTimeouts } from './check-limits';
import { messagesLost, messagesStranded } from './check-messages';
import { migrationsRecorded } from './check-migrations';
import { connectionPooler } from './check-pooler';
import {
  connectionCharset,
  idsMysql,
  idsPostgres,
  serverDurabilityMysql,
  serverDurabilityPostgres,
  serverDurabilitySqlite,
  serverIsolationMysql,
  serverVersion,
  serverWritable,
  singleWriterMysql,
} from './check-server';
import { tablesCollations, tablesColumns, tablesIndexes, tablesLanes, tablesPresent, tablesStorage } from './check-tables';
import { timeUtc } from './check-time';
import type { Check } from './finding';

const TABLES = [tablesPresent, tablesColumns, tablesCollations, tablesIndexes, tablesStorage, tablesLanes, migrationsRecorded];
const MESSAGES = [timeUtc, messagesLost, messagesStranded];
const CONNECTION = [connectionCharset, connectionPooler];

const MYSQL: readonly Check[] = [
  serverVersion,
  serverWritable,
  singleWriterMysql,
  serverDurabilityMysql,
  serverIsolationMysql,
  idsMysql,
  packetMysql,
  serverTimeouts,
  ...CONNECTION,
  ...TABLES,
  ...MESSAGES,
];

const POSTGRES: readonly Check[] = [serverVersion, serverWritable, serverDurabilityPostgres, idsPostgres, serverTimeouts, ...CONNECTION, ...TABLES, ...MESSAGES];

const SQLITE: readonly Check[] = [serverVersion, serverDurabilitySqlite, tablesPresent, tablesLanes, migrationsRecorded, ...MESSAGES];

/** What is looked at, on each database. */
export function checksOf(name: Dialect['name']): readonly Check[] {
  if (name === 'postgres') return POSTGRES;
  return name === 'sqlite' ? SQLITE : MYSQL;
}
