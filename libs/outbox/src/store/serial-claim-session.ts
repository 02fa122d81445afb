import type { Claim, ClaimLimits, ClaimSession, Settlement } from './claim';
import { type Connection, inTransaction } from './connection';
import type { OutboxStore } from './outbox-store';
import { readHeads, type Waiters } from './read-heads';
import { settle } from './settle';

/**
 * Claims where the app has one connection in all: a transaction open while the broker answers would stop everybody.
 * Nothing else may claim, so there is one worker in one process, and it needs no lock but the store's turn, for
 * operators.
 */
export class SerialClaimSession implements ClaimSession {
  private waiters: Waiters | undefined;
  private endTurn: (() => void) | undefined;

  constructor(
    private readonly store: OutboxStore,
    private readonly connection: Connection,
  ) {}

  async claim(limits: ClaimLimits): Promise<Claim | undefined> {
    this.endTurn = await this.store.turn.take();
    try {
      const claim = await this.read(limits);
      if (!claim) this.giveBack();
      return claim;
    } catch (error) {
      this.giveBack();
      throw error;
    }
  }

  private read(limits: ClaimLimits): Promise<Claim | undefined> {
    return inTransaction(this.connection, async () => {
      const { dialect, lanes: count } = this.store;
      const lanes = await dialect.lockLanes(this.connection, 0, count, count);
      if (lanes.length === 0) return undefined;
      const { messages, waiters } = await readHeads(this.connection, dialect, lanes, limits);
      this.waiters = waiters;
      return { lanes, messages, orphans: waiters.orphans.map(({ id }) => id) };
    });
  }

  async settle(settlement: Settlement): Promise<void> {
    const { waiters } = this;
    this.waiters = undefined;
    try {
      await inTransaction(this.connection, () => settle(this.connection, this.store.dialect, settlement, waiters));
    } finally {
      this.giveBack();
    }
  }

  async release(): Promise<void> {
    this.waiters = undefined;
    this.giveBack();
  }

  onLost(listener: (cause: Error) => void): void {
    this.connection.onLost(listener);
  }

  close(): Promise<void> {
    this.giveBack();
    return this.connection.close();
  }

  private giveBack(): void {
    this.endTurn?.();
    this.endTurn = undefined;
  }
}
