import type { DataSource, QueryRunner } from 'typeorm';
import type { Server } from '../../store/detect-dialect';
import type { Dialect } from '../../store/dialect';
import type { TableNames } from '../../store/tables';
import type { ExpectedTable } from './expected-tables';

/** The checks, by the ids that docs/operating.md explains. */
export const CHECK_IDS = [
  'server.version',
  'server.writable',
  'server.single-writer',
  'server.durability',
  'server.isolation',
  'server.ids',
  'server.packet',
  'server.timeouts',
  'connection.charset',
  'connection.pooler',
  'tables.present',
  'tables.columns',
  'tables.collations',
  'tables.indexes',
  'tables.storage',
  'tables.lanes',
  'migrations.recorded',
  'time.utc',
  'messages.lost',
  'messages.stranded',
  'brokers.reachable',
  'topics.present',
  'topics.replicas',
  'topics.size',
] as const;

export type CheckId = (typeof CHECK_IDS)[number];

/**
 * `fault`: a promise is broken, or something does not work. `warning`: it works, and may not on a bad day. `unknown`: the
 * check could not be made, such as for want of a right.
 */
export type Verdict = 'ok' | 'warning' | 'fault' | 'unknown';

/** What one check has found. */
export interface Finding {
  readonly check: CheckId;
  readonly verdict: Verdict;
  /** What was seen. */
  readonly seen: string;
  /** What to do; `null` where all is well. */
  readonly advice: string | null;
}

/** What a check finds, without its name. */
export type Opinion = Omit<Finding, 'check'>;

/** Something that is wrong; a check may find several. */
export interface Trouble extends Opinion {
  readonly verdict: 'warning' | 'fault';
  readonly advice: string;
}

/** What checks look at. */
export interface Subject {
  readonly dataSource: DataSource;
  /** A connection for this check. */
  readonly sql: QueryRunner;
  readonly server: Server;
  readonly dialect: Dialect;
  /** The tables as they are called, without quotes and schema. */
  readonly names: TableNames;
  /** What the migration makes. */
  readonly expected: readonly ExpectedTable[];
  /** Number of lanes that the app says, if it does. */
  readonly lanes: number | undefined;
  readonly maxMessageBytes: number;
  /** The relay's, in ms. */
  readonly sessionTimeout: number;
}

export interface Check {
  readonly id: CheckId;
  /** Whether it runs outside of a read-only transaction. */
  readonly outside?: true;
  look(subject: Subject): Promise<Opinion>;
}

export function ok(seen: string): Opinion {
  return { verdict: 'ok', seen, advice: null };
}

export function warning(seen: string, advice: string): Trouble {
  return { verdict: 'warning', seen, advice };
}

export function fault(seen: string, advice: string): Trouble {
  return { verdict: 'fault', seen, advice };
}

/** All troubles as one opinion, as bad as the worst of them; without any, `seen` is all right. */
export function judge(seen: string, troubles: readonly Trouble[]): Opinion {
  if (troubles.length === 0) return ok(seen);
  return {
    verdict: troubles.some(({ verdict }) => verdict === 'fault') ? 'fault' : 'warning',
    seen: troubles.map((trouble) => trouble.seen).join('; '),
    advice: [...new Set(troubles.map(({ advice }) => advice))].join(' '),
  };
}
