import type { DataSource } from 'typeorm';
import { OutboxOptionsError } from '../../errors';
import { assertKnown } from '../../event/assert-known';
import { DEFAULT_RELAY_OPTIONS } from '../../relay/relay-options';
import { dialectOf, readServer } from '../../store/detect-dialect';
import { laneCount, type SchemaOptions, tableNames } from '../../store/tables';
import type { KafkaClient } from '../kafka-topic';
import { checksOf } from './checks';
import { expectedTables } from './expected-tables';
import type { Check, Finding, Subject } from './finding';
import { examineTopics, topicsOfLog } from './check-topics';

/** What the doctor is told of the app; what is left out has the module's defaults. */
export interface DiagnosisOptions extends SchemaOptions {
  /** Largest message in bytes, as in the options of the module. Default 1,000,000. */
  readonly maxMessageBytes?: number;
  /** `relay.sessionTimeout` of the module, in ms. Default 10 s. */
  readonly sessionTimeout?: number;
  /** A client of kafkajs, to look at brokers and topics too. Default: they are not looked at. */
  readonly kafka?: KafkaClient;
  /** Topics to look at, beside those that are in the log. */
  readonly topics?: readonly string[];
  /** How long one look may take, in ms. Default 30 s. */
  readonly patience?: number;
}

/** What the doctor has found. */
export interface Diagnosis {
  readonly findings: readonly Finding[];
  /** Whether no check has found a fault. */
  readonly healthy: boolean;
}

const OPTIONS: Record<keyof DiagnosisOptions, true> = { tables: true, lanes: true, maxMessageBytes: true, sessionTimeout: true, kafka: true, topics: true, patience: true };
const PATIENCE = 30_000;

/**
 * Looks at everything that the outbox needs of its database, and of Kafka where a client is given, and says what to do
 * where something is wrong: see docs/operating.md. It changes nothing, works before there are tables, and reads no more
 * than the newest part of the log. The data source must be initialised.
 *
 * @throws DatabaseUnsupportedError when it is none of the databases that the outbox works with
 * @throws OutboxOptionsError
 */
export async function diagnoseOutbox(dataSource: DataSource, options: DiagnosisOptions = {}): Promise<Diagnosis> {
  assertKnown(options, OPTIONS, '');
  const { maxMessageBytes = 1_000_000, sessionTimeout = DEFAULT_RELAY_OPTIONS.sessionTimeout, patience = PATIENCE } = options;
  for (const [name, value] of Object.entries({ maxMessageBytes, sessionTimeout, patience })) {
    if (!Number.isSafeInteger(value) || value < 1) throw new OutboxOptionsError(`${name} must be a whole number of at least 1, not ${String(value)}.`);
  }
  const names = tableNames(options);
  const lanes = options.lanes === undefined ? undefined : laneCount(options);
  const server = await readServer(dataSource.options, dataSource);
  const dialect = dialectOf(server, dataSource.options, names);
  const bare = { dataSource, server, dialect, names, lanes, maxMessageBytes, sessionTimeout, expected: [] };
  const partitions = await within(bare, patience, {}, async ({ sql }) => (await dialect.partitions?.list(sql)) ?? []).catch(() => []);
  const about = { ...bare, expected: expectedTables(dialect, names, partitions.length > 0) };

  const findings: Finding[] = [];
  for (const check of checksOf(dialect.name)) findings.push(await make(about, check, patience));
  if (options.kafka) {
    const found = await within(about, patience, {}, topicsOfLog).catch(() => []);
    const topics = [...new Set([...(options.topics ?? []), ...found])].toSorted();
    findings.push(...(await examineTopics(options.kafka, topics, maxMessageBytes)));
  }
  return { findings, healthy: findings.every(({ verdict }) => verdict !== 'fault') };
}

async function make(about: Omit<Subject, 'sql'>, check: Check, patience: number): Promise<Finding> {
  try {
    return { check: check.id, ...(await within(about, patience, check, (subject) => check.look(subject))) };
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    return { check: check.id, verdict: 'unknown', seen: `it cannot be seen: ${said}`, advice: 'See to what the other checks say first; else ask with a user that may look.' };
  }
}

/** A connection for one look, on which nothing can be changed. */
async function within<T>(about: Omit<Subject, 'sql'>, patience: number, { outside = false }: { readonly outside?: boolean }, look: (subject: Subject) => Promise<T>): Promise<T> {
  const { dataSource, dialect } = about;
  // With one connection a transaction would be everybody's, and so would its end.
  const isShared = dialect.name === 'sqlite';
  const sql = dataSource.createQueryRunner();
  let connection: unknown;
  const work = async (): Promise<T> => {
    connection = await sql.connect();
    if (isShared || outside) return look({ ...about, sql });
    await sql.query('START TRANSACTION READ ONLY');
    try {
      // As for relays: with stale statistics a scan looks cheaper than two thousand keys.
      if (dialect.name === 'postgres') await sql.query('SET LOCAL enable_seqscan = off');
      return await look({ ...about, sql });
    } finally {
      await sql.query('ROLLBACK').catch(() => undefined);
    }
  };
  const working = work().finally(() => sql.release().catch(() => undefined));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`no answer in ${patience} ms`));
      // It waits for a lock, it may be: the connection has no other way out.
      if (connection !== undefined && !isShared) dialect.abandon(connection);
    }, patience);
  });
  try {
    return await Promise.race([working, late]);
  } finally {
    clearTimeout(timer);
  }
}
