import type { QueryRunner } from 'typeorm';
import type { Claim, ClaimLimits, ClaimSession, Settlement } from './claim';
import type { OutboxStore } from './outbox-store';
import { readHeads } from './read-heads';
import { moveToHeld, settle } from './settle';

/**
 * Claims that live as long as a transaction: the lanes are locked in it, and what settles them is sent on the same
 * connection. So a worker that has lost its connection has lost its lanes, and cannot settle.
 */
export class TransactionalClaimSession implements ClaimSession {
  private nextLane = 0;

  constructor(
    private readonly store: OutboxStore,
    private readonly queryRunner: QueryRunner,
  ) {}

  async claim(limits: ClaimLimits): Promise<Claim | undefined> {
    await this.queryRunner.startTransaction('READ COMMITTED');
    try {
      const lanes = await this.lockLanes(limits.lanes);
      if (lanes.length === 0) {
        await this.queryRunner.rollbackTransaction();
        return undefined;
      }
      // A statement of its own: only after the lock is the view of the lane's messages certain to be current.
      const { messages, followers } = await readHeads(this.queryRunner, this.store.dialect, lanes, limits);
      await moveToHeld(this.queryRunner, this.store.dialect, followers);
      return { lanes, messages };
    } catch (error) {
      await this.release();
      throw error;
    }
  }

  async settle(settlement: Settlement): Promise<void> {
    await settle(this.queryRunner, this.store.dialect, settlement);
    await this.queryRunner.commitTransaction();
  }

  async release(): Promise<void> {
    try {
      if (this.queryRunner.isTransactionActive) await this.queryRunner.rollbackTransaction();
    } catch {
      // The connection is gone, and its locks with it.
    }
  }

  async close(): Promise<void> {
    await this.release();
    await this.queryRunner.release();
  }

  /** From a different lane each time: a fixed order would starve the last ones. */
  private async lockLanes(limit: number): Promise<readonly number[]> {
    const first = this.nextLane;
    let lanes = await this.store.dialect.lockLanes(this.queryRunner, first, limit);
    if (lanes.length === 0 && first > 0) lanes = await this.store.dialect.lockLanes(this.queryRunner, 0, limit);
    this.nextLane = ((lanes.at(-1) ?? -1) + 1) % this.store.lanes;
    return lanes;
  }
}
