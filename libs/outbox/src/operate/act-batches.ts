import type { DataSource } from 'typeorm';
import { OperationInvalidError } from '../errors';
import { findMessages, type MessageFilter, type MessagePage, readMessages } from '../store/look';
import type { MessageState } from '../store/message-state';
import type { OutboxStore } from '../store/outbox-store';
import { checkFilter, checkIds, checkLimit, type IdLists } from './targets';

/**
 * The messages that an act is for: one id, several, or what a filter finds, oldest first and at most `limit`. A filter
 * without a `state` finds those that are dead, and for `replay` those that were sent.
 */
export type Target = string | readonly string[] | (MessageFilter & { readonly limit: number });

/** Messages of one transaction: ids of the log. */
export interface Batch {
  readonly ids: readonly string[];
  /** What they were given as, where it was something else. */
  readonly given: ReadonlyMap<string, string>;
  /** What was given and is not in the log. */
  readonly unknown: readonly string[];
}

/** Rows of one batch. */
export const BATCH = 500;

/** Cuts the target of an act into batches. */
export class ActBatches {
  constructor(
    private readonly dataSource: DataSource,
    private readonly store: OutboxStore,
  ) {}

  /**
   * @param states those that the act applies to
   * @throws OperationInvalidError at once, not with the first batch
   */
  of(target: Target, states: ReadonlySet<MessageState>, byDefault: MessageState): AsyncIterable<Batch> {
    if (typeof target === 'string') return this.byIds(checkIds([target]));
    if (isList(target)) return this.byIds(checkIds(target));
    const { limit, ...filter } = target ?? {};
    checkFilter(filter);
    checkLimit(limit, Number.MAX_SAFE_INTEGER);
    if (filter.state !== undefined && !states.has(filter.state)) {
      throw new OperationInvalidError(`It applies to messages that are ${[...states].join(' or ')}, not ${filter.state}.`);
    }
    return this.byFilter({ ...filter, state: filter.state ?? byDefault }, limit);
  }

  private async *byIds({ ids, messageIds, invalid }: IdLists): AsyncGenerator<Batch> {
    const all = [...ids, ...messageIds];
    if (invalid.length > 0) yield { ids: [], given: new Map(), unknown: invalid };
    for (let start = 0; start < all.length; start += BATCH) {
      const part = all.slice(start, start + BATCH);
      const { ids: logIds, messageIds: uuids } = checkIds(part);
      const found = uuids.length === 0 ? [] : await readMessages(this.dataSource, this.store, [], uuids);
      const given = new Map(found.map(({ id, messageId }) => [id, messageId]));
      const known = new Set(found.map(({ messageId }) => messageId));
      yield { ids: [...new Set([...logIds, ...given.keys()])], given, unknown: uuids.filter((id) => !known.has(id)) };
    }
  }

  private async *byFilter(filter: MessageFilter, limit: number): AsyncGenerator<Batch> {
    let left = limit;
    for (let after: string | null = '0'; after !== null && left > 0; ) {
      const page: MessagePage = await findMessages(this.dataSource, this.store, filter, after, Math.min(left, BATCH));
      if (page.messages.length > 0) yield { ids: page.messages.map(({ id }) => id), given: new Map(), unknown: [] };
      left -= page.messages.length;
      after = page.next;
    }
  }
}

function isList(target: Target): target is readonly string[] {
  return Array.isArray(target);
}
