import { LanesBusyError } from '../errors';
import { type Connection, inTransaction } from './connection';
import type { OutboxStore } from './outbox-store';

/**
 * Runs work in a transaction that has the given lanes for itself, as a relay's claim would: no message of them is on
 * its way, and none moves.
 *
 * @throws LanesBusyError when a relay does not give them back in time
 */
export async function withLanes<T>(connection: Connection, store: OutboxStore, lanes: Iterable<number>, work: () => Promise<T>): Promise<T> {
  const { dialect, turn } = store;
  const sorted = [...new Set(lanes)].sort((a, b) => a - b);
  const endTurn = dialect.laneLocks === 'none' ? await turn.take() : undefined;
  try {
    return await inTransaction(connection, async () => {
      try {
        await dialect.waitForLanes(connection, sorted);
      } catch (cause) {
        throw new LanesBusyError(`A relay has kept lanes ${sorted.join(', ')} for too long. Try again.`, { cause });
      }
      return work();
    });
  } finally {
    // A connection that cannot do it has lost its locks.
    await dialect.unlockLanes(connection, sorted).catch(() => undefined);
    endTurn?.();
  }
}
