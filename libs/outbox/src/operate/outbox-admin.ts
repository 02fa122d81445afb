import type { DataSource } from 'typeorm';
import { OperationInvalidError } from '../errors';
import { slotOf } from '../event/hash';
import type { ClaimSessions } from '../relay/claim-sessions';
import type { Connection } from '../store/connection';
import { endHolds, holdAll, readHolds } from '../store/hold';
import { type FoundMessage, findMessages, type MessageContent, type MessageFilter, type MessagePage, readMessages, type TopicsReport, topicsReport } from '../store/look';
import { type QueueReport, queueReport } from '../store/look-queue';
import type { MessageState } from '../store/message-state';
import { type HoldPlace, placeName } from '../store/order-key';
import type { Backlog, OutboxStore } from '../store/outbox-store';
import { pauseLanes, pauseTopic, resumeTopic } from '../store/pauses';
import { discard, type Repaired, requeue } from '../store/repair';
import { withLanes } from '../store/with-lanes';
import { Audit, type Operator } from './audit';
import type { Cleaner, Pass, PurgeReport } from './cleaner';
import { checkRetention, type RetentionOptions } from './retention-options';
import { checkFilter, checkIds, checkLimit, checkPlace, checkTopic, type IdLists } from './targets';

/**
 * The messages that an act is for: one id, several, or what a filter finds, oldest first and at most `limit`. A filter
 * without a `state` finds those that are dead, and for `replay` those that were sent.
 */
export type Target = string | readonly string[] | (MessageFilter & { readonly limit: number });

/** What an act has come to. An id that was given appears as it was given. */
export interface ActResult {
  /** How many messages it was done to. */
  readonly done: number;
  /** Ids that are not in the log. */
  readonly notFound: readonly string[];
  /** Messages that it does not apply to, and what they are. */
  readonly skipped: readonly { readonly id: string; readonly state: MessageState }[];
}

export interface ActOptions {
  /** Called after each batch with what was done so far. */
  readonly onProgress?: (soFar: ActResult) => void;
}

export type OutboxStats = Backlog & TopicsReport;

/** Rows of one batch: one transaction. */
const BATCH = 500;
const DEFAULT_PAGE = 50;
const MAX_PAGE = 1000;

const REQUEUED: ReadonlySet<MessageState> = new Set(['dead', 'discarded']);
const DISCARDED: ReadonlySet<MessageState> = new Set(['dead', 'held', 'pending']);
const REPLAYED: ReadonlySet<MessageState> = new Set(['sent']);

/**
 * What an operator does: look, and repair. Each act takes the lanes of its messages as a relay would, so relays and other
 * operators may work meanwhile; each says who acts and why, and is written to the log. Messages are named by their id in
 * the log or by their message id.
 */
export class OutboxAdmin {
  private readonly audit = new Audit();
  private sessions: ClaimSessions | undefined;

  /** @internal */
  constructor(
    private readonly dataSource: DataSource,
    private readonly store: OutboxStore,
    private readonly openSessions: () => ClaimSessions,
    private readonly cleaner: Cleaner,
    private readonly wake: () => void,
  ) {}

  /** What waits, in all and by topic, and what is paused. Reads what waits, not the log. */
  async stats(): Promise<OutboxStats> {
    const [backlog, topics] = await Promise.all([this.store.backlog(this.dataSource), topicsReport(this.dataSource, this.store)]);
    return { ...backlog, ...topics };
  }

  /**
   * Where messages wait: lanes and keys, and how far the log is.
   *
   * @param since the `head` of an earlier look: `added` counts what has come since
   * @throws OperationInvalidError
   */
  async queue(since?: string): Promise<QueueReport> {
    checkPlace('since', since ?? '0');
    return queueReport(this.dataSource, this.store, since);
  }

  /**
   * Messages by topic, key, type, state and time, in the order of the log, without what they say. One page looks at no
   * more than 10,000 rows: it may be empty and yet have a `next`.
   *
   * @param page `limit` defaults to 50, and is at most 1000
   * @throws OperationInvalidError
   */
  async find(filter: MessageFilter = {}, page: { readonly after?: string; readonly limit?: number } = {}): Promise<MessagePage> {
    checkFilter(filter);
    const { after = '0', limit = DEFAULT_PAGE } = page;
    checkPlace('after', after);
    checkLimit(limit, MAX_PAGE);
    return findMessages(this.dataSource, this.store, filter, after, limit);
  }

  /** One message; what it says only when asked for, for those who may read it. `undefined` when it is not in the log. */
  async show(id: string, options: { readonly content?: boolean } = {}): Promise<(FoundMessage & Partial<MessageContent>) | undefined> {
    const { ids, messageIds } = checkIds([id]);
    const [message] = await readMessages(this.dataSource, this.store, ids, messageIds);
    if (!message || options.content === true) return message;
    const { payload: _payload, headers: _headers, ...rest } = message;
    return rest;
  }

  /**
   * Has dead or discarded messages sent again, with a full count of attempts, each in its old place of its key among
   * those that still wait. What its key has sent meanwhile stands before it. A block that it has left on its key is over.
   *
   * @throws OperationInvalidError, LanesBusyError
   */
  async requeue(target: Target, operator: Operator, options: ActOptions = {}): Promise<ActResult> {
    return this.act('requeue', target, operator, options, REQUEUED, 'dead', (connection, ids) => requeue(connection, this.store, ids, REQUEUED));
  }

  /**
   * Decides that dead, held or pending messages are not sent. They stay in the log, with the reason, as long as sent ones
   * do, and can be requeued. A block that a dead one has left on its key is over.
   *
   * @throws OperationInvalidError, LanesBusyError
   */
  async discard(target: Target, operator: Operator, options: ActOptions = {}): Promise<ActResult> {
    const note = `discarded by ${operator?.by}: ${operator?.reason}`;
    return this.act('discard', target, operator, options, DISCARDED, 'dead', (connection, ids) => discard(connection, this.store, ids, DISCARDED, note));
  }

  /**
   * Sends messages of the log once more, with the same message id: consumers that remember them skip them, others handle
   * them. They come behind what their keys have sent since.
   *
   * @throws OperationInvalidError, LanesBusyError
   */
  async replay(target: Target, operator: Operator, options: ActOptions = {}): Promise<ActResult> {
    return this.act('replay', target, operator, options, REPLAYED, 'sent', (connection, ids) => requeue(connection, this.store, ids, REPLAYED));
  }

  /** Stops a key: its messages wait, until it is released. @throws OperationInvalidError, LanesBusyError */
  async block(topic: string, key: string, operator: Operator): Promise<void> {
    const place = this.placeOf(topic, key);
    return this.audit.record('block', operator, { topic, key }, () =>
      this.withConnection((connection) =>
        withLanes(connection, this.store, [place.lane], () => holdAll(connection, this.store.dialect, [{ place, state: 'stopped', delayMs: null }])),
      ),
    );
  }

  /**
   * Lets a key go on that an operator, or a message that was given up, has stopped.
   *
   * @returns whether it was stopped
   * @throws OperationInvalidError, LanesBusyError
   */
  async release(topic: string, key: string, operator: Operator): Promise<boolean> {
    const place = this.placeOf(topic, key);
    return this.audit.record('release', operator, { topic, key }, () =>
      this.withConnection((connection) =>
        withLanes(connection, this.store, [place.lane], async () => {
          const state = (await readHolds(connection, this.store.dialect, [place])).get(placeName(place));
          if (state !== 'stopped' && state !== 'blocked') return false;
          await endHolds(connection, this.store.dialect, [place]);
          return true;
        }),
      ),
    );
  }

  /**
   * Pauses all relays of the database, or a topic. When it resolves, nothing of it is on its way any more. It lasts until
   * it is resumed, restarts included.
   *
   * @throws OperationInvalidError, LanesBusyError
   */
  async pause(operator: Operator, topic?: string): Promise<void> {
    if (topic !== undefined) checkTopic(topic);
    return this.audit.record('pause', operator, { topic: topic ?? 'all' }, () =>
      this.withConnection((connection) => (topic === undefined ? pauseLanes(connection, this.store, true) : pauseTopic(connection, this.store, topic))),
    );
  }

  /** Ends a pause; relays go on within a polling interval. @throws OperationInvalidError, LanesBusyError */
  async resume(operator: Operator, topic?: string): Promise<void> {
    if (topic !== undefined) checkTopic(topic);
    return this.audit.record('resume', operator, { topic: topic ?? 'all' }, () =>
      this.withConnection((connection) => (topic === undefined ? pauseLanes(connection, this.store, false) : resumeTopic(connection, this.store, topic))),
    );
  }

  /**
   * Takes old rows away now, by the rules of the module's `retention` or others.
   *
   * @throws OutboxOptionsError
   */
  async purge(operator: Operator, rules: RetentionOptions = {}, options: { readonly onProgress?: (purged: PurgeReport) => void } = {}): Promise<Pass> {
    const all = { ...this.cleaner.rules, ...rules };
    checkRetention(all);
    return this.audit.record('purge', operator, rules, () => this.cleaner.pass(all, options.onProgress));
  }

  /** @internal */
  async close(): Promise<void> {
    await this.sessions?.close();
    this.sessions = undefined;
  }

  private async act(
    name: string,
    target: Target,
    operator: Operator,
    { onProgress }: ActOptions,
    states: ReadonlySet<MessageState>,
    byDefault: MessageState,
    work: (connection: Connection, ids: readonly string[]) => Promise<Repaired>,
  ): Promise<ActResult> {
    const batches = this.batchesOf(target, states, byDefault);
    return this.audit.record(name, operator, typeof target === 'string' || Array.isArray(target) ? { ids: [target].flat().slice(0, BATCH) } : (target as object), () =>
      this.withConnection(async (connection) => {
        const soFar = { done: 0, notFound: [] as string[], skipped: [] as { id: string; state: MessageState }[] };
        for await (const { ids, given, unknown } of batches) {
          const { done, skipped, notFound } = await work(connection, ids);
          const asGiven = (id: string): string => given.get(id) ?? id;
          soFar.done += done.length;
          soFar.notFound.push(...unknown, ...notFound.map(asGiven));
          soFar.skipped.push(...skipped.map(({ id, state }) => ({ id: asGiven(id), state })));
          if (done.length > 0) this.wake();
          onProgress?.({ ...soFar, notFound: [...soFar.notFound], skipped: [...soFar.skipped] });
        }
        return soFar;
      }),
    );
  }

  /** Ids of the log, in batches, with what they were given as. */
  private batchesOf(target: Target, states: ReadonlySet<MessageState>, byDefault: MessageState): AsyncIterable<Batch> {
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

  private placeOf(topic: string, key: string): HoldPlace {
    checkTopic(topic);
    if (typeof key !== 'string' || key === '') throw new OperationInvalidError('A key must be a text that is not empty.');
    return { lane: slotOf(topic, key, this.store.lanes), topic, key };
  }

  private async withConnection<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    this.sessions ??= this.openSessions();
    const connection = await this.sessions.openConnection();
    try {
      return await work(connection);
    } finally {
      await connection.close();
      this.wake();
    }
  }
}

interface Batch {
  readonly ids: readonly string[];
  readonly given: ReadonlyMap<string, string>;
  readonly unknown: readonly string[];
}

function isList(target: Target): target is readonly string[] {
  return Array.isArray(target);
}
