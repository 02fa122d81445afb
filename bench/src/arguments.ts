import { parseArgs } from 'node:util';

export const DATABASES = ['mysql', 'mariadb', 'postgres'] as const;
export type DatabaseName = (typeof DATABASES)[number];
export const CLIENTS = ['kafkajs', 'platformatic'] as const;
export type ClientName = (typeof CLIENTS)[number];

/** What all benches are told. */
export interface BenchOptions {
  readonly db: DatabaseName;
  readonly client: ClientName;
  /** What becomes of the log's rows of sent messages. */
  readonly settle: 'mark' | 'delete';
  /** Measured runs; a warm-up comes before them. */
  readonly runs: number;
  /** Messages; each bench has its own default. */
  readonly size: number | undefined;
  /** Seconds of a run, for benches that work at a steady rate; each has its own default. */
  readonly seconds: number | undefined;
  /** Events or inserts per second, for benches that work at a steady rate. */
  readonly rate: number | undefined;
  /** Seconds for which a transaction is left open elsewhere. */
  readonly openTransaction: number;
  /** Processes that relay. */
  readonly relays: number;
  /** Workers of each of them, and lanes of the outbox; default: the library's. */
  readonly workers: number | undefined;
  readonly lanes: number | undefined;
  /** One short run on shared servers, of which the figures say nothing. */
  readonly smoke: boolean;
  /** Nothing on standard output but the result. */
  readonly json: boolean;
}

/** Options that only some benches know. */
const ONLY_FOR: Readonly<Record<string, readonly string[]>> = {
  client: ['drain', 'latency', 'interference', 'consume', 'backlog', 'soak'],
  settle: ['drain', 'latency', 'backlog', 'soak'],
  runs: ['drain', 'latency', 'enqueue', 'consume', 'interference', 'backlog', 'partial-index'],
  rate: ['latency', 'interference', 'soak'],
  'open-transaction': ['soak'],
  workers: ['drain', 'latency'],
  relays: ['drain'],
  lanes: ['drain'],
};
/** More connections than a server has by default, and more lanes than an outbox, help nobody. */
const MOST_WORKERS = 32;
const MOST_LANES = 1024;

export type Bench = (options: BenchOptions) => Promise<Record<string, unknown>>;

export function usage(benches: readonly string[]): string {
  return [
    `Usage: npm run bench -- ${benches.join('|')} [options]`,
    `  --db ${DATABASES.join('|')}        default mysql`,
    `  --client ${CLIENTS.join('|')}     default kafkajs`,
    '  --settle mark|delete             default mark',
    '  --size <messages> --seconds <of a run> --rate <per second> --runs <measured runs, default 3>',
    '  --workers <of a relay>           drain, latency: default the library\'s',
    '  --relays <processes, default 1> --lanes <of the outbox>     drain: how it scales',
    '  --open-transaction <seconds>     soak: leaves a transaction open elsewhere for so long',
    '  --json                           nothing on standard output but the result',
    '  --smoke                          one short run on shared servers; its figures say nothing',
  ].join('\n');
}

/** @throws Error that says what is wrong */
export function readArguments(args: readonly string[], benches: readonly string[]): { readonly name: string; readonly options: BenchOptions } {
  const { positionals, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      db: { type: 'string', default: 'mysql' },
      client: { type: 'string' },
      settle: { type: 'string' },
      runs: { type: 'string' },
      size: { type: 'string' },
      seconds: { type: 'string' },
      rate: { type: 'string' },
      relays: { type: 'string' },
      workers: { type: 'string' },
      lanes: { type: 'string' },
      'open-transaction': { type: 'string' },
      smoke: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const [name, ...others] = positionals;
  if (others.length > 0) throw new Error(`One bench at a time, not also ${others.join(', ')}.`);
  const bench = oneOf('bench', name, benches);
  for (const [option, only] of Object.entries(ONLY_FOR)) {
    if (values[option as keyof typeof values] === undefined || only.includes(bench)) continue;
    throw new Error(`--${option} is for ${only.join(', ')}, not for ${bench}.`);
  }
  if (bench === 'partial-index' && values.db !== 'postgres') throw new Error('Of these databases only PostgreSQL has partial indexes: --db postgres.');
  const seconds = wholeNumber('--seconds', values.seconds);
  const openTransaction = wholeNumber('--open-transaction', values['open-transaction']) ?? 0;
  if (seconds !== undefined && openTransaction > seconds) throw new Error('--open-transaction must not be longer than --seconds.');
  return {
    name: bench,
    options: {
      db: oneOf('--db', values.db, DATABASES),
      client: oneOf('--client', values.client ?? 'kafkajs', CLIENTS),
      settle: oneOf('--settle', values.settle ?? 'mark', ['mark', 'delete']),
      runs: wholeNumber('--runs', values.runs) ?? (values.smoke || bench === 'soak' ? 1 : 3),
      size: wholeNumber('--size', values.size),
      seconds,
      rate: wholeNumber('--rate', values.rate),
      openTransaction,
      relays: wholeNumber('--relays', values.relays, MOST_WORKERS) ?? 1,
      workers: wholeNumber('--workers', values.workers, MOST_WORKERS),
      lanes: wholeNumber('--lanes', values.lanes, MOST_LANES),
      smoke: values.smoke,
      json: values.json,
    },
  };
}

/** The relay's option, where it was given. */
export function workersOf({ workers }: BenchOptions): { readonly concurrency?: number } {
  return workers === undefined ? {} : { concurrency: workers };
}

function oneOf<T extends string>(what: string, value: string | undefined, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value);
  if (found === undefined) throw new Error(`${what} must be one of ${choices.join(', ')}, ${value === undefined ? 'and is missing' : `not ${value}`}.`);
  return found;
}

function wholeNumber(what: string, value: string | undefined, most = Number.MAX_SAFE_INTEGER): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 1) throw new Error(`${what} must be a whole number of at least 1, not ${value}.`);
  if (number > most) throw new Error(`${what} must be at most ${most}, not ${value}.`);
  return number;
}
