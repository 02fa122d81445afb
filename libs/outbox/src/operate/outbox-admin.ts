import type { DataSource } from 'typeorm';
import { slotOf } from '../event/hash';
import type { ClaimSessions } from '../relay/claim-sessions';
import { type AuditFilter, type AuditPage, findActs } from '../store/audit';
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
import { ActBatches, type Batch, BATCH, type Target } from './act-batches';
import { Audit, type Operator } from './audit';
import type { Cleaner, Pass, PurgeReport } from './cleaner';
import { OperatorConnections } from './operator-connections';
import { type RetentionOptions, retentionOf } from './retention-options';
import { checkAuditFilter, checkFilter, checkIds, checkKey, checkLimit, checkPlace, checkTopic } from './targets';

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

const DEFAULT_PAGE = 50;
const MAX_PAGE = 1000;

/** A topic may be called `all`. */
const ALL_RELAYS = { relays: 'all' };

const REQUEUED: ReadonlySet<MessageState> = new Set(['dead', 'discarded']);
const DISCARDED: ReadonlySet<MessageState> = new Set(['dead', 'held', 'pending']);
const REPLAYED: ReadonlySet<MessageState> = new Set(['sent']);

/**
 * What an operator does: look, and repair. Each act takes the lanes of its messages as a relay would, so relays and other
 * operators may work meanwhile; each says who acts and why, and is written down, in `outbox_audit` and in the log. Messages
 * are named by their id in the log or by their message id.
 */
export class OutboxAdmin {
  /** @internal */
  readonly trail: Audit;
  private readonly connections: OperatorConnections;
  private readonly batches: ActBatches;

  /** @internal */
  constructor(
    private readonly dataSource: DataSource,
    private readonly store: OutboxStore,
    openSessions: () => ClaimSessions,
    private readonly cleaner: Cleaner,
    private readonly wake: () => void,
  ) {
    this.connections = new OperatorConnections(openSessions, wake);
    this.trail = new Audit(store, this.connections);
    this.batches = new ActBatches(dataSource, store);
  }

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
   * What operators have done, newest first: in this process or another, by code, HTTP or on the command line.
   *
   * @param page `limit` defaults to 50, and is at most 1000
   * @throws OperationInvalidError
   */
  async audit(filter: AuditFilter = {}, page: { readonly before?: string; readonly limit?: number } = {}): Promise<AuditPage> {
    checkAuditFilter(filter);
    const { before, limit = DEFAULT_PAGE } = page;
    if (before !== undefined) checkPlace('before', before);
    checkLimit(limit, MAX_PAGE);
    const messages = filter.message === undefined ? undefined : await this.logIdsOf(filter.message);
    return findActs(this.dataSource, this.store.dialect, filter, messages, before, limit);
  }

  /**
   * Has dead or discarded messages sent again, with a full count of attempts, each in its old place of its key among
   * those that still wait. What its key has sent meanwhile stands before it. A block that it has left on its key is over.
   *
   * @throws OperationInvalidError, LanesBusyError
   */
  async requeue(target: Target, operator: Operator, options: ActOptions = {}): Promise<ActResult> {
    return this.act('requeue', target, operator, options, REQUEUED, 'dead', (connection, ids, written) => requeue(connection, this.store, ids, REQUEUED, written));
  }

  /**
   * Decides that dead, held or pending messages are not sent. They stay in the log, with the reason, as long as sent ones
   * do, and can be requeued. A block that a dead one has left on its key is over.
   *
   * @throws OperationInvalidError, LanesBusyError
   */
  async discard(target: Target, operator: Operator, options: ActOptions = {}): Promise<ActResult> {
    const note = `discarded by ${operator?.by}: ${operator?.reason}`;
    return this.act('discard', target, operator, options, DISCARDED, 'dead', (connection, ids, written) => discard(connection, this.store, ids, DISCARDED, note, written));
  }

  /**
   * Sends messages of the log once more, with the same message id: consumers that remember them skip them, others handle
   * them. They come behind what their keys have sent since.
   *
   * @throws OperationInvalidError, LanesBusyError
   */
  async replay(target: Target, operator: Operator, options: ActOptions = {}): Promise<ActResult> {
    return this.act('replay', target, operator, options, REPLAYED, 'sent', (connection, ids, written) => requeue(connection, this.store, ids, REPLAYED, written));
  }

  /** Stops a key: its messages wait, until it is released. @throws OperationInvalidError, LanesBusyError */
  async block(topic: string, key: string, operator: Operator): Promise<void> {
    const place = this.placeOf(topic, key);
    return this.trail.record('block', operator, { topic, key }, (connection, entry) =>
      withLanes(connection, this.store, [place.lane], async () => {
        await holdAll(connection, this.store.dialect, [{ place, state: 'stopped', delayMs: null }]);
        await entry.done(connection, null);
      }),
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
    return this.trail.record('release', operator, { topic, key }, (connection, entry) =>
      withLanes(connection, this.store, [place.lane], async () => {
        const state = (await readHolds(connection, this.store.dialect, [place])).get(placeName(place));
        if (state !== 'stopped' && state !== 'blocked') return false;
        await endHolds(connection, this.store.dialect, [place]);
        await entry.done(connection, true);
        return true;
      }),
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
    return this.trail.record('pause', operator, topic === undefined ? ALL_RELAYS : { topic }, (connection) =>
      topic === undefined ? pauseLanes(connection, this.store, true) : pauseTopic(connection, this.store, topic),
    );
  }

  /** Ends a pause; relays go on within a polling interval. @throws OperationInvalidError, LanesBusyError */
  async resume(operator: Operator, topic?: string): Promise<void> {
    if (topic !== undefined) checkTopic(topic);
    return this.trail.record('resume', operator, topic === undefined ? ALL_RELAYS : { topic }, (connection) =>
      topic === undefined ? pauseLanes(connection, this.store, false) : resumeTopic(connection, this.store, topic),
    );
  }

  /**
   * Takes old rows away now, by the rules of the module's `retention` or others.
   *
   * @throws OutboxOptionsError, PartitionsMissingError
   */
  async purge(operator: Operator, rules: RetentionOptions = {}, options: { readonly onProgress?: (purged: PurgeReport) => void } = {}): Promise<Pass> {
    const all = retentionOf(this.cleaner.rules, rules);
    return this.trail.record('purge', operator, rules, () => this.cleaner.pass(all, options.onProgress));
  }

  /** @internal */
  async close(): Promise<void> {
    await this.connections.close();
  }

  private async act(
    name: string,
    target: Target,
    operator: Operator,
    { onProgress }: ActOptions,
    states: ReadonlySet<MessageState>,
    byDefault: MessageState,
    work: Work,
  ): Promise<ActResult> {
    const batches = this.batches.of(target, states, byDefault);
    const described = typeof target === 'string' || Array.isArray(target) ? { ids: [target].flat().slice(0, BATCH) } : (target as object);
    return this.trail.record(name, operator, described, async (connection, entry) => {
      let soFar: ActResult = { done: 0, notFound: [], skipped: [] };
      for await (const batch of batches) {
        const repaired = await work(connection, batch.ids, (result) => entry.note(connection, together(soFar, batch, result), result.done));
        entry.committed();
        soFar = together(soFar, batch, repaired);
        if (repaired.done.length > 0) this.wake();
        onProgress?.(soFar);
      }
      return soFar;
    });
  }

  private async logIdsOf(id: string): Promise<readonly string[]> {
    const { ids, messageIds } = checkIds([id]);
    if (messageIds.length === 0) return ids;
    return (await readMessages(this.dataSource, this.store, [], messageIds)).map((message) => message.id);
  }

  private placeOf(topic: string, key: string): HoldPlace {
    checkTopic(topic);
    checkKey(key);
    return { lane: slotOf(topic, key, this.store.lanes), topic, key };
  }
}

type Work = (connection: Connection, ids: readonly string[], written: (result: Repaired) => Promise<void>) => Promise<Repaired>;

/** What was done before, and with one batch more. Ids appear as they were given. */
function together(before: ActResult, { given, unknown }: Batch, { done, notFound, skipped }: Repaired): ActResult {
  const asGiven = (id: string): string => given.get(id) ?? id;
  return {
    done: before.done + done.length,
    notFound: [...before.notFound, ...unknown, ...notFound.map(asGiven)],
    skipped: [...before.skipped, ...skipped.map(({ id, state }) => ({ id: asGiven(id), state }))],
  };
}
