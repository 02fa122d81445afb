import type { Order, RelayOptions } from 'nestjs-transactional-outbox';
import type { Series } from './history.js';

export type DatabaseName = 'mysql' | 'mariadb' | 'postgres';

export interface DatabaseAddress {
  readonly type: DatabaseName;
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
  readonly database: string;
}

/** What a child process is told when it starts. */
export interface ChildConfig {
  /** Such as `writer-0.2`: the third process in the place of the first writer. */
  readonly name: string;
  readonly seed: number;
  readonly database: DatabaseAddress;
  readonly broker: { readonly host: string; readonly port: number };
  /** Where to go instead of the address that the broker tells. */
  readonly brokerProxy: { readonly host: string; readonly port: number } | null;
  readonly order: Order;
  readonly settle: NonNullable<RelayOptions['settle']>;
  /** Transactions per second of one writer. */
  readonly rate: number;
}

/** What children tell. */
export type ChildMessage =
  | { readonly type: 'ready' }
  | { readonly type: 'rolledBack'; readonly eventIds: readonly string[] }
  | { readonly type: 'figures'; readonly process: string; readonly isWhole: boolean; readonly series: readonly Series[] }
  | { readonly type: 'commit'; readonly eventId: string; readonly begun: number; readonly ended: number };

/** What children are told later. */
export type ParentMessage = { readonly type: 'poison'; readonly count: number } | { readonly type: 'tellFigures' };

/** Keys whose transactions lock them in the business tables, and keys that only the library orders. */
export const LOCKED_KEYS: readonly string[] = Array.from({ length: 10 }, (_, index) => `locked-${index}`);
export const UNLOCKED_KEYS: readonly string[] = ['free-0', 'free-1'];
/** Keys of which each writer has one for itself. */
export const OWN_KEYS: readonly string[] = Array.from({ length: 8 }, (_, index) => `own-${index}`);

/** Under which effects are recorded; the handlers' own names begin with it. */
export const CONSUMER = 'chaos';

/** Small batches and short times: more steps in which a fault can strike. */
export const RELAY_OPTIONS: RelayOptions = {
  concurrency: 2,
  batchSize: 60,
  lanesPerClaim: 8,
  pollInterval: 100,
  publishTimeout: 2000,
  maxAttempts: 5,
  retryDelay: 200,
  maxRetryDelay: 2000,
};

export function childConfig(): ChildConfig {
  const text = process.env['CHAOS_CHILD'];
  if (!text) throw new Error('CHAOS_CHILD is not set: this process is started by the chaos ground.');
  return JSON.parse(text) as ChildConfig;
}

/** The 3 of `writer-3.1`. */
export function placeIndex(name: string): number {
  return Number(/\d+/.exec(name)?.[0] ?? 0);
}

export function tell(message: ChildMessage): void {
  process.send?.(message);
}
