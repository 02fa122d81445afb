import { OutboxOptionsError } from '../errors';
import type { Patience } from '../store/dialect';
import type { OutboxStore } from '../store/outbox-store';
import type { AmbientTransactions } from '../transaction/ambient-transactions';
import type { TransactionRunner } from '../transaction/transaction-runner';
import type { ConsumerEvents } from './consumer-events';
import { assertConsumerName } from './consumer-name';
import { assertConsumeOptions, assertDedupe } from './consumer-options-check';
import type { Consumed, Dedupe, MessageClaim } from './dedupe';
import type { MessageOrigin } from './delivery';
import { checkedId } from './message-id';
import { type IsApplied, StateDedupe } from './state-dedupe';
import { TableDedupe } from './table-dedupe';

interface CommonRunOptions {
  /** Where the message lies in Kafka, for those who listen to {@link ConsumerEvents}. */
  readonly origin?: MessageOrigin | undefined;
  /** Set after a failed attempt: the count of failures then goes with the success. Default false. */
  readonly failedBefore?: boolean;
}

export type IdempotentRunOptions = CommonRunOptions &
  (
    | {
        /** How repeats are recognised, as with `@IdempotentConsumer`. Default `table`. */
        readonly dedupe?: 'table' | 'redis';
        /** What to do while another copy of the message is being handled. Default `wait`. */
        readonly concurrentCopies?: Patience;
        readonly isApplied?: never;
      }
    | {
        readonly dedupe: 'state';
        /** Says, in the transaction and before the handler, whether the message's effect is there already. */
        readonly isApplied: IsApplied;
        readonly concurrentCopies?: never;
      }
  );

/** A message of a batch. */
export interface BatchItem {
  /** At most 190 characters. */
  readonly messageId: string;
  /** Where the message lies in Kafka, for those who listen to {@link ConsumerEvents}. */
  readonly origin?: MessageOrigin | undefined;
}

export interface BatchRunOptions {
  /** What to do while another copy of one of the messages is being handled. Default `wait`. */
  readonly concurrentCopies?: Patience;
}

/** What became of the messages of a batch. */
export interface ConsumedBatch<M> {
  readonly fresh: readonly M[];
  readonly duplicates: readonly M[];
}

/** Runs handlers once for each message. */
export class IdempotentRunner {
  private readonly table: TableDedupe;

  constructor(
    private readonly ambient: AmbientTransactions,
    private readonly transactions: TransactionRunner,
    private readonly store: OutboxStore,
    private readonly events: ConsumerEvents,
    private readonly redis: Dedupe | undefined,
  ) {
    this.table = new TableDedupe(ambient, transactions, store);
  }

  /**
   * Runs `handler` in a transaction that first records the message for the consumer. When it rejects, the record is
   * undone with everything else, and the message can be tried again. Inside an open transaction it joins that.
   * With `dedupe: 'redis'` there is no transaction, and must be none.
   *
   * @param consumer the consumer's name, at most 100 characters
   * @param messageId at most 190 characters; upper and lower case and trailing blanks count
   * @throws OutboxOptionsError, MessageIdInvalidError when the name or the id does not fit
   * @throws MessageInProgressError when another copy is being handled and does not end in time
   * @throws StateConflictError, LeaseLostError, RedisUnavailableError, NoTransactionError: see docs/errors.md
   */
  async run<T>(
    consumer: string,
    messageId: string,
    handler: () => Promise<T>,
    options: IdempotentRunOptions = {},
  ): Promise<Consumed<T>> {
    assertConsumerName(consumer);
    checkedId(messageId);
    assertRunOptions(options);
    const claim: MessageClaim = { consumer, messageId, concurrentCopies: options.concurrentCopies ?? 'wait' };
    const consumed = await this.runOnce(claim, handler, options);
    this.events.emit({ kind: consumed.duplicate ? 'duplicate' : 'handled', consumer, messageId, origin: options.origin });
    return consumed;
  }

  /**
   * Runs `handler` on those of several messages that the consumer has not had, in one transaction that records them
   * first, with one INSERT. When it rejects, nothing of the batch has happened: run its messages one by one then, so that
   * only the bad one is held up. Where all are repeats, the handler is not called.
   *
   * @param messages repeats among themselves count once
   * @throws OutboxOptionsError, MessageIdInvalidError when the name or an id does not fit
   * @throws MessageInProgressError when a copy of one is being handled and does not end in time
   */
  async runBatch<M extends BatchItem>(
    consumer: string,
    messages: readonly M[],
    handler: (fresh: readonly M[]) => Promise<unknown>,
    { concurrentCopies = 'wait' }: BatchRunOptions = {},
  ): Promise<ConsumedBatch<M>> {
    assertConsumerName(consumer);
    assertPatience(concurrentCopies);
    const firsts = new Map<string, M>();
    for (const message of messages) {
      checkedId(message.messageId);
      if (!firsts.has(message.messageId)) firsts.set(message.messageId, message);
    }
    const isFresh = (fresh: ReadonlySet<string>, message: M): boolean =>
      fresh.has(message.messageId) && firsts.get(message.messageId) === message;
    const fresh = await this.table.runBatch(consumer, [...firsts.keys()], concurrentCopies, (ids) =>
      handler(messages.filter((message) => isFresh(ids, message))),
    );
    const consumed = {
      fresh: messages.filter((message) => isFresh(fresh, message)),
      duplicates: messages.filter((message) => !isFresh(fresh, message)),
    };
    for (const { messageId, origin } of consumed.fresh) this.events.emit({ kind: 'handled', consumer, messageId, origin });
    for (const { messageId, origin } of consumed.duplicates) this.events.emit({ kind: 'duplicate', consumer, messageId, origin });
    return consumed;
  }

  private async runOnce<T>(claim: MessageClaim, handler: () => Promise<T>, options: IdempotentRunOptions): Promise<Consumed<T>> {
    const forget = async (): Promise<void> => {
      // Joins the transaction, where there is one.
      if (options.failedBefore) await this.store.forgetFailures(this.ambient.dataSource, claim.consumer, claim.messageId);
    };
    if (options.dedupe === 'redis') {
      const { redis } = this;
      if (!redis) throw new OutboxOptionsError('dedupe "redis" needs the module\'s option consume.redis: redisDedupe({ … }).');
      const consumed = await this.transactions.run({ propagation: 'NEVER' }, () => redis.run(claim, handler));
      // The effect is there: a database that is away must not bring it about again.
      await forget().catch(() => undefined);
      return consumed;
    }
    const dedupe =
      options.dedupe === 'state' ? new StateDedupe(this.ambient, this.transactions, options.isApplied) : this.table;
    return dedupe.run(claim, async () => {
      const result = await handler();
      await forget();
      return result;
    });
  }
}

/** From JavaScript, anything may come. @throws OutboxOptionsError */
function assertRunOptions(options: IdempotentRunOptions): void {
  assertDedupe(options, 'idempotent.run: ');
  assertPatience(options.concurrentCopies);
}

function assertPatience(concurrentCopies: Patience | undefined): void {
  assertConsumeOptions(concurrentCopies === undefined ? {} : { concurrentCopies }, 'idempotent.run: ');
}
