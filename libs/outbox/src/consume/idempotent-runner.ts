import { NoTransactionError } from '../errors';
import type { Patience } from '../store/dialect';
import { gaveWay } from '../store/message-in-progress';
import type { OutboxStore } from '../store/outbox-store';
import type { AmbientTransactions } from '../transaction/ambient-transactions';
import type { TransactionRunner } from '../transaction/transaction-runner';
import type { ConsumerEvents } from './consumer-events';
import { assertConsumerName } from './consumer-name';
import type { MessageOrigin } from './delivery';
import { checkedId } from './message-id';

/** What became of a message: handled now, or recognised as handled before. */
export type Consumed<T> = { readonly duplicate: false; readonly result: T } | { readonly duplicate: true };

export interface IdempotentRunOptions {
  /** What to do while another copy of the message is being handled. Default `wait`. */
  readonly concurrentCopies?: Patience;
  /** Where the message lies in Kafka, for those who listen to {@link ConsumerEvents}. */
  readonly origin?: MessageOrigin | undefined;
  /** Set after a failed attempt: the count of failures then goes with the success. Default false. */
  readonly failedBefore?: boolean;
}

/** How often a copy queues up again; each time one of those that wait gets its turn. */
const MAX_ROUNDS = 20;

/** Runs handlers once for each message. */
export class IdempotentRunner {
  constructor(
    private readonly ambient: AmbientTransactions,
    private readonly transactions: TransactionRunner,
    private readonly store: OutboxStore,
    private readonly events: ConsumerEvents,
  ) {}

  /**
   * Runs `handler` in a transaction that first records the message for the consumer. When it rejects, the record is
   * undone with everything else, and the message can be tried again. Inside an open transaction it joins that.
   *
   * @param consumer the consumer's name, at most 100 characters
   * @param messageId at most 190 characters; upper and lower case and trailing blanks count
   * @throws OutboxOptionsError, MessageIdInvalidError when the name or the id does not fit
   * @throws MessageInProgressError when another copy is being handled and does not end in time
   */
  async run<T>(
    consumer: string,
    messageId: string,
    handler: () => Promise<T>,
    { concurrentCopies = 'wait', origin, failedBefore = false }: IdempotentRunOptions = {},
  ): Promise<Consumed<T>> {
    assertConsumerName(consumer);
    checkedId(messageId);
    const attempt = (): Promise<Consumed<T>> =>
      this.transactions.run(async () => {
        const scope = this.ambient.current();
        if (!scope) throw new NoTransactionError('The handler has no transaction.');
        const first = await this.store.consume(scope.queryRunner, consumer, messageId, concurrentCopies);
        if (!first) return { duplicate: true };
        const result = await handler();
        if (failedBefore) await this.store.forgetFailures(scope.queryRunner, consumer, messageId);
        return { duplicate: false, result };
      });
    const consumed = await this.whileGivingWay(attempt);
    this.events.emit({ kind: consumed.duplicate ? 'duplicate' : 'handled', consumer, messageId, origin });
    return consumed;
  }

  /**
   * When a first copy rolls back, InnoDB hands its lock to all who wait for it, and they deadlock. Nothing was done in
   * their transactions yet, so they just queue up again; inside an open transaction that is not ours to do.
   */
  private async whileGivingWay<T>(attempt: () => Promise<T>): Promise<T> {
    const isOwn = this.ambient.current() === undefined;
    for (let round = 1; ; round++) {
      try {
        return await attempt();
      } catch (error) {
        if (!isOwn || !gaveWay(error) || round === MAX_ROUNDS) throw error;
      }
    }
  }
}
