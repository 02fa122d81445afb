import { Injectable } from '@nestjs/common';
import { InjectDataSource, InjectEntityManager } from '@nestjs/typeorm';
import { EmitsEvent, Outbox, Transactional } from 'nestjs-transactional-outbox';
import { DataSource, EntityManager } from 'typeorm';
import { CommitClock } from './commit-clock.js';
import { type LedgerEvent, LedgerMoved, LedgerNoted, LedgerSeen } from './events.js';

type EventClass = new () => LedgerEvent;

/** An event before it has its place in commit order. */
export interface Draft {
  readonly eventId: string;
  readonly key: string | null;
  readonly type: EventClass;
  readonly pad: string;
}

/** Thrown by what is meant to roll back. */
export class MeantToFail extends Error {}

/**
 * The business: books events, each with the number that the ledger gives it under the lock of its key, so that the
 * ledger tells the order of commits.
 */
@Injectable()
export class LedgerService {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly outbox: Outbox,
  ) {}

  @Transactional()
  @EmitsEvent(LedgerMoved, (moved: LedgerMoved) => moved)
  async move(draft: Draft): Promise<LedgerEvent> {
    return this.book(this.manager, draft);
  }

  /** Drafts come sorted by key, so that nobody waits in a circle. */
  @Transactional()
  async bookAll(drafts: readonly Draft[]): Promise<void> {
    for (const draft of drafts) this.outbox.emit(await this.book(this.manager, draft));
  }

  @Transactional()
  async bookAndFail(drafts: readonly Draft[]): Promise<void> {
    await this.bookAll(drafts);
    throw new MeantToFail();
  }

  /** The events before and after stay; those of the savepoint go. */
  @Transactional()
  async bookAround(before: readonly Draft[], inside: readonly Draft[], after: readonly Draft[]): Promise<void> {
    await this.bookAll(before);
    await this.attempt(inside).catch((error: unknown) => {
      if (!(error instanceof MeantToFail)) throw error;
    });
    await this.bookAll(after);
  }

  @Transactional({ propagation: 'NESTED' })
  protected async attempt(drafts: readonly Draft[]): Promise<void> {
    await this.bookAll(drafts);
    throw new MeantToFail();
  }

  /** What is booked apart stays, though the rest fails. */
  @Transactional()
  async failAround(outer: readonly Draft[], apart: Draft): Promise<void> {
    await this.bookAll(outer);
    await this.bookApart([apart]);
    throw new MeantToFail();
  }

  @Transactional({ propagation: 'REQUIRES_NEW' })
  protected async bookApart(drafts: readonly Draft[]): Promise<void> {
    await this.bookAll(drafts);
  }

  /** Somebody's own transaction, with an explicit manager. */
  async bookByHand(drafts: readonly Draft[]): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      for (const draft of drafts) this.outbox.emit(await this.book(manager, draft), { manager });
    });
  }

  /** Takes no lock of its own: only the library keeps these in the order of their commits. */
  async bookUnlocked(draft: Draft): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      if (manager.queryRunner) CommitClock.note(manager.queryRunner, draft.eventId);
      await this.enter(manager, draft, null);
      this.outbox.emit(toEvent(draft, null), { manager });
    });
  }

  private async book(manager: EntityManager, draft: Draft): Promise<LedgerEvent> {
    const seq = draft.key === null ? null : await this.nextPlace(manager, draft.key);
    await this.enter(manager, draft, seq);
    return toEvent(draft, seq);
  }

  private async nextPlace(manager: EntityManager, key: string): Promise<number> {
    await manager.query(`UPDATE ledger_key SET seq = seq + 1 WHERE k = ${this.parameter(1)}`, [key]);
    const rows: { seq: string | number }[] = await manager.query(
      `SELECT seq FROM ledger_key WHERE k = ${this.parameter(1)}`,
      [key],
    );
    return Number(rows[0]?.seq);
  }

  private async enter(manager: EntityManager, { eventId, key, type }: Draft, seq: number | null): Promise<void> {
    const topic = topicOf(type);
    await manager.query(
      `INSERT INTO ledger_entry (event_id, topic, k, seq) VALUES (${[1, 2, 3, 4].map((n) => this.parameter(n)).join(', ')})`,
      [eventId, topic, key, seq],
    );
  }

  private parameter(index: number): string {
    return this.dataSource.options.type === 'postgres' ? `$${index}` : '?';
  }
}

function toEvent({ eventId, key, type, pad }: Draft, seq: number | null): LedgerEvent {
  return Object.assign(new type(), { eventId, key, seq, pad });
}

function topicOf(type: EventClass): string {
  if (type === LedgerMoved) return 'ledger-moves';
  if (type === LedgerNoted) return 'ledger-notes';
  if (type === LedgerSeen) return 'ledger-sights';
  throw new Error(`no topic for ${type.name}`);
}
