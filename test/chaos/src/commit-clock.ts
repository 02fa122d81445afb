import { type AfterQueryEvent, type BeforeQueryEvent, EventSubscriber, type EntitySubscriberInterface, type QueryRunner } from 'typeorm';
import { tell } from './child-config.js';

/** One clock for all processes of the machine, in milliseconds. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * Tells of each noted event when its COMMIT began and when it had been answered. Sees the statements as they go to the
 * database, so what the library does before COMMIT lies before `begun`.
 */
@EventSubscriber()
export class CommitClock implements EntitySubscriberInterface {
  private static readonly noted = new WeakMap<QueryRunner, string>();
  private readonly begun = new WeakMap<QueryRunner, number>();

  /** The event of the transaction that runs on this query runner. */
  static note(queryRunner: QueryRunner, eventId: string): void {
    CommitClock.noted.set(queryRunner, eventId);
  }

  async beforeQuery({ query, queryRunner }: BeforeQueryEvent): Promise<void> {
    if (query !== 'COMMIT' || !CommitClock.noted.has(queryRunner)) return;
    // A slow commit gives others the time to commit in between.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 6));
    this.begun.set(queryRunner, now());
  }

  afterQuery({ query, queryRunner, success }: AfterQueryEvent): void {
    const eventId = CommitClock.noted.get(queryRunner);
    if (eventId === undefined || (query !== 'COMMIT' && query !== 'ROLLBACK')) return;
    CommitClock.noted.delete(queryRunner);
    const begun = this.begun.get(queryRunner);
    if (query === 'COMMIT' && success && begun !== undefined) tell({ type: 'commit', eventId, begun, ended: now() });
  }
}
