import type { Claim, ClaimLimits, ClaimSession, Settlement } from './claim';
import type { Connection } from './connection';
import type { OutboxStore } from './outbox-store';
import { readHeads, type Waiters } from './read-heads';
import { settle } from './settle';

/**
 * Claims that live as long as a transaction: the lanes are locked in it, and what settles them is sent on the same
 * connection. So a worker that has lost its connection has lost its lanes, and cannot settle.
 *
 * Nothing is written before the messages are settled: an open claim locks lanes only, and has no transaction id.
 */
export class TransactionalClaimSession implements ClaimSession {
  private nextLane = 0;
  private lanes: readonly number[] = [];
  private waiters: Waiters | undefined;

  constructor(
    private readonly store: OutboxStore,
    private readonly connection: Connection,
  ) {}

  async claim(limits: ClaimLimits): Promise<Claim | undefined> {
    const { dialect } = this.store;
    await this.connection.begin();
    try {
      this.lanes = await this.lockLanes(limits.lanes);
      if (this.lanes.length === 0) {
        await this.connection.rollback();
        return undefined;
      }
      // A statement of its own: only after the lock is the view of the lane's messages certain to be current.
      const { messages, waiters } = await readHeads(this.connection, dialect, this.lanes, limits);
      this.waiters = waiters;
      return { lanes: this.lanes, messages, orphans: waiters.orphans.map(({ id }) => id) };
    } catch (error) {
      await this.release();
      throw error;
    }
  }

  async settle(settlement: Settlement): Promise<void> {
    await settle(this.connection, this.store.dialect, settlement, this.waiters);
    await this.connection.commit();
    await this.unlock();
  }

  async release(): Promise<void> {
    await this.connection.rollback();
    // A connection that cannot do it has lost its locks.
    await this.unlock().catch(() => undefined);
  }

  onLost(listener: (cause: Error) => void): void {
    this.connection.onLost(listener);
  }

  close(): Promise<void> {
    return this.connection.close();
  }

  private async unlock(): Promise<void> {
    const { lanes } = this;
    this.lanes = [];
    this.waiters = undefined;
    await this.store.dialect.unlockLanes(this.connection, lanes);
  }

  /** From a different lane each time: a fixed order would starve the last ones. */
  private async lockLanes(limit: number): Promise<readonly number[]> {
    const { dialect, lanes: count } = this.store;
    const first = this.nextLane;
    let lanes = await dialect.lockLanes(this.connection, first, count, limit);
    if (lanes.length === 0 && first > 0) lanes = await dialect.lockLanes(this.connection, 0, first, limit);
    this.nextLane = ((lanes.at(-1) ?? -1) + 1) % count;
    return lanes;
  }
}
