import { Logger } from '@nestjs/common';
import type { ClaimSessions } from '../relay/claim-sessions';
import { purgeAudit } from '../store/audit';
import { type Connection, inTransaction } from '../store/connection';
import type { OutboxStore } from '../store/outbox-store';
import { type Purged, purgeByTime, purgeDead, purgeSent } from '../store/purge';
import { purgeSequences } from '../store/purge-sequences';
import { PartitionCleaner } from './partition-cleaner';
import type { Retention } from './retention-options';

/** Rows that were taken away, by kind. */
export interface PurgeReport {
  readonly sent: number;
  readonly dead: number;
  readonly consumed: number;
  readonly failures: number;
  readonly audit: number;
  readonly sequences: number;
  readonly history: number;
}

/** How a pass ended: it is done, another instance was at it, or the process stops. */
export type PassOutcome = 'done' | 'busy' | 'stopped';

export interface Pass {
  readonly outcome: PassOutcome;
  readonly purged: PurgeReport;
}

const KINDS = ['sent', 'dead', 'consumed', 'failures', 'audit', 'sequences', 'history'] as const;
const NOTHING: PurgeReport = { sent: 0, dead: 0, consumed: 0, failures: 0, audit: 0, sequences: 0, history: 0 };

/**
 * Keeps the tables small: each pass takes away what is older than its rule, in batches that are a short transaction each,
 * with a pause between them. One cleaner of all instances works at a time. A pass that breaks off has done what it has
 * done; the next one goes on from there.
 */
export class Cleaner {
  private readonly logger = new Logger('OutboxCleaner');
  private readonly totals = { ...NOTHING };
  private running: Promise<unknown> | undefined;
  private stopping = false;
  private wakeUp: (() => void) | undefined;
  private lastPassAt: Date | null = null;
  private lastStart = Number.NEGATIVE_INFINITY;
  private failing = false;
  private readonly partitions: PartitionCleaner;

  constructor(
    private readonly store: OutboxStore,
    private readonly openSessions: () => ClaimSessions,
    readonly rules: Retention,
  ) {
    this.partitions = new PartitionCleaner(store);
  }

  /** What was taken away since the start of the process, and when a pass was last completed here. */
  status(): { readonly lastPassAt: Date | null; readonly purged: PurgeReport } {
    return { lastPassAt: this.lastPassAt, purged: { ...this.totals } };
  }

  /** Called from time to time: begins a pass when one is due. */
  poll(): void {
    if (this.running || this.stopping || performance.now() - this.lastStart < this.rules.interval) return;
    this.lastStart = performance.now();
    this.running = this.pass(this.rules)
      .then(() => this.over())
      .catch((error: unknown) => this.failed(error))
      .finally(() => {
        this.running = undefined;
      });
  }

  /** One pass. Rejects when the database does not answer. */
  async pass(rules: Retention, onBatch: (purged: PurgeReport) => void = () => undefined): Promise<Pass> {
    const purged = { ...NOTHING };
    const count = (kind: (typeof KINDS)[number], rows: number): void => {
      purged[kind] += rows;
      this.totals[kind] += rows;
      onBatch({ ...purged });
    };
    const sessions = this.openSessions();
    let connection: Connection | undefined;
    try {
      connection = await sessions.openConnection();
      // It has the right to clean, through all pauses.
      connection.keepAwake();
      if (!(await this.store.dialect.lockCleaner(connection))) return { outcome: 'busy', purged };
      for (const kind of KINDS) {
        const age = rules[kind];
        if (age === false || (kind === 'sent' && rules.mode === 'partition')) continue;
        for (let after: string | null = '0'; after !== null; ) {
          if (this.stopping) return { outcome: 'stopped', purged };
          const batch: Purged = await this.batch(connection, kind, after, { age, rows: rules.batchSize }, rules);
          count(kind, batch.purged);
          after = batch.next;
          if (after !== null) await this.rest(rules.pause);
        }
      }
      if (rules.mode === 'partition') {
        const isDone = await this.partitions.clean({
          connection,
          open: () => sessions.openConnection(),
          rules,
          isStopping: () => this.stopping,
          rest: (pause) => this.rest(pause),
          onPurged: (rows) => count('sent', rows),
        });
        if (!isDone) return { outcome: 'stopped', purged };
      }
    } finally {
      await connection?.close();
      await sessions.close();
    }
    this.lastPassAt = new Date();
    return { outcome: 'done', purged };
  }

  /** Makes partitions ahead where the rules ask for them, unless another instance is at it. Never rejects. */
  begin(): void {
    if (this.rules.mode !== 'partition' || this.running || this.stopping) return;
    this.running = this.prepare()
      .catch((error: unknown) => this.failed(error))
      .finally(() => {
        this.running = undefined;
      });
  }

  /** Lets the running batch end. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.wakeUp?.();
    await this.running;
  }

  private async prepare(): Promise<void> {
    const sessions = this.openSessions();
    try {
      const connection = await sessions.openConnection();
      try {
        if (await this.store.dialect.lockCleaner(connection)) await this.partitions.extend(connection, this.rules);
      } finally {
        await connection.close();
      }
    } finally {
      await sessions.close();
    }
  }

  private batch(connection: Connection, kind: (typeof KINDS)[number], after: string, limits: { age: number; rows: number }, rules: Retention): Promise<Purged> {
    const { dialect } = this.store;
    const mode = rules.mode === 'archive' ? 'archive' : 'delete';
    return inTransaction(connection, () => {
      if (kind === 'sent') return purgeSent(connection, dialect, after, limits, mode);
      if (kind === 'dead') return purgeDead(connection, dialect, after, limits, mode);
      if (kind === 'audit') return purgeAudit(connection, dialect, limits);
      if (kind === 'sequences') return purgeSequences(connection, dialect, after, limits);
      return purgeByTime(connection, dialect, kind === 'failures' ? 'failure' : kind, after, limits);
    });
  }

  private async rest(milliseconds: number): Promise<void> {
    if (this.stopping) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wakeUp = undefined;
  }

  private over(): void {
    if (this.failing) this.logger.log('Cleaning again.');
    this.failing = false;
  }

  /** A lock that was not to be had, a database that is away: the next pass does it. */
  private failed(error: unknown): void {
    const text = `Cleaning has broken off, and is tried again with the next pass: ${error instanceof Error ? error.message : String(error)}`;
    if (this.failing) this.logger.debug(text);
    else this.logger.warn(text);
    this.failing = true;
  }
}
