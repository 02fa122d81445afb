import type { QueryRunner } from 'typeorm';
import type { Claim, ClaimLimits, ClaimSession, Settlement } from './claim';
import type { OutboxStore } from './outbox-store';
import { readHeads } from './read-heads';
import { moveToHeld, settle } from './settle';

/**
 * Claims where the app has one connection in all: a transaction open while the broker answers would stop everybody.
 * Nothing else may claim, so there is one worker in one process, and it needs no lock.
 */
export class SerialClaimSession implements ClaimSession {
  constructor(
    private readonly store: OutboxStore,
    private readonly queryRunner: QueryRunner,
  ) {}

  claim(limits: ClaimLimits): Promise<Claim | undefined> {
    return this.inTransaction(async () => {
      const { dialect } = this.store;
      const lanes = await dialect.lockLanes(this.queryRunner, 0, this.store.lanes);
      if (lanes.length === 0) return undefined;
      const { messages, followers } = await readHeads(this.queryRunner, dialect, lanes, limits);
      await moveToHeld(this.queryRunner, dialect, followers);
      return { lanes, messages };
    });
  }

  settle(settlement: Settlement): Promise<void> {
    return this.inTransaction(() => settle(this.queryRunner, this.store.dialect, settlement));
  }

  async release(): Promise<void> {
    // Nothing is locked.
  }

  close(): Promise<void> {
    return this.queryRunner.release();
  }

  private async inTransaction<T>(work: () => Promise<T>): Promise<T> {
    await this.queryRunner.startTransaction();
    try {
      const result = await work();
      await this.queryRunner.commitTransaction();
      return result;
    } catch (error) {
      await this.queryRunner.rollbackTransaction();
      throw error;
    }
  }
}
