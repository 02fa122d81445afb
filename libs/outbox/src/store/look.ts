import { slotOf } from '../event/hash';
import type { Sql } from './dialect';
import { ENDED_AS, openStates, type MessageState } from './message-state';
import { holdKey, TOPIC_HOLD_KEY } from './order-key';
import type { OutboxStore } from './outbox-store';

/** What messages are looked for. All that is given must be true of a message. */
export interface MessageFilter {
  readonly topic?: string;
  readonly key?: string;
  readonly type?: string;
  readonly state?: MessageState;
  /** Created at this time or later, by the database's clock. */
  readonly from?: Date;
  /** Created before this time. */
  readonly to?: Date;
}

/** A message as a list shows it. */
export interface FoundMessage {
  /** Place in the log. */
  readonly id: string;
  readonly messageId: string;
  readonly topic: string;
  readonly key: string | null;
  readonly type: string;
  readonly state: MessageState;
  /** How often it was refused. */
  readonly attempts: number;
  readonly lastError: string | null;
  readonly createdAt: Date;
  readonly sentAt: Date | null;
}

export interface MessagePage {
  readonly messages: readonly FoundMessage[];
  /** Give it as `after` for the next page; `null` at the end. A page may hold fewer than asked for, or none. */
  readonly next: string | null;
}

/** What a message says. */
export interface MessageContent {
  readonly payload: string | null;
  readonly headers: string | null;
}

/** Rows of the log that one page looks at at most: no filter makes it read the whole log. */
const SCANNED = 10_000;
/** Pending messages whose topics are counted. */
const SAMPLE = 10_000;

interface Row {
  id: string;
  message_id: string;
  topic: string;
  message_key: string | null;
  event_type: string;
  status: number;
  retry_count: number;
  last_error: string | null;
  created_ms: number | string;
  sent_ms: number | string | null;
}

/** A page of the messages behind `after`, in the order of the log. */
export async function findMessages(sql: Sql, store: OutboxStore, filter: MessageFilter, after: string, limit: number): Promise<MessagePage> {
  const { tables, epochMs, idText } = store.dialect;
  const { conditions, parameters } = conditionsOf(filter, epochMs);
  const source = filter.state === 'dead' ? tables.dead : tables.message;
  const [bound] = (await sql.query(
    `SELECT ${idText('MAX(b.id)')} AS last, COUNT(*) AS n FROM (SELECT s.id AS id FROM ${source} s WHERE s.id > ${after} ORDER BY s.id LIMIT ${SCANNED}) b`,
  )) as { last: string | null; n: number | string }[];
  if (!bound?.last) return { messages: [], next: null };
  const range = (id: string): string => `${id} > ${after} AND ${id} <= ${bound.last}`;
  const rows =
    filter.state === 'dead'
      ? await readDead(sql, store, [range('d.id'), ...conditions], parameters, limit)
      : await read(sql, store, [range('m.id'), ...conditions].join(' AND '), parameters, `ORDER BY m.id LIMIT ${limit}`);
  const messages = (await withStates(sql, store, rows)).filter(({ state }) => filter.state === undefined || state === filter.state);
  const isEnd = rows.length < limit && Number(bound.n) < SCANNED;
  return { messages, next: isEnd ? null : rows.length === limit ? (rows.at(-1)?.id ?? null) : bound.last };
}

/** Dead messages, each looked up by its id: for a join PostgreSQL may read the whole log, and of a scalar subquery it makes none. */
async function readDead(sql: Sql, store: OutboxStore, [range, ...conditions]: readonly string[], parameters: readonly (string | number)[], limit: number): Promise<readonly Row[]> {
  const { tables, bind, idText } = store.dialect;
  const dead = (await sql.query(
    bind(
      `SELECT ${idText('d.id')} AS id FROM ${tables.dead} d WHERE ${range} AND
       (SELECT m.id FROM ${tables.message} m WHERE ${['m.id = d.id', ...conditions].join(' AND ')}) IS NOT NULL ORDER BY d.id LIMIT ${limit}`,
    ),
    [...parameters],
  )) as { id: string }[];
  return dead.length === 0 ? [] : read(sql, store, store.dialect.idIn('m.id', dead.map(({ id }) => id)), [], 'ORDER BY m.id');
}

/** Conditions on the log, called `m`. A message's state is not all in it: what is found is looked at once more. */
function conditionsOf({ topic, key, type, state, from, to }: MessageFilter, ms: (column: string) => string): { conditions: string[]; parameters: (string | number)[] } {
  const given = [
    ['m.topic = ?', topic],
    ['m.message_key = ?', key],
    ['m.event_type = ?', type],
    [`${ms('m.created_at')} >= ?`, from?.getTime()],
    [`${ms('m.created_at')} < ?`, to?.getTime()],
  ].filter((pair): pair is [string, string | number] => pair[1] !== undefined);
  const status = state === undefined ? undefined : (Object.entries(ENDED_AS).find(([, ended]) => ended === state)?.[0] ?? '0');
  // What was sent is marked a little later.
  const statuses = status === '1' ? '0, 1' : status;
  return {
    conditions: [...given.map(([condition]) => condition), ...(statuses === undefined ? [] : [`m.status IN (${statuses})`])],
    parameters: given.map(([, value]) => value),
  };
}

/** Messages by their ids in the log or by their message ids, with what they say. */
export async function readMessages(sql: Sql, store: OutboxStore, ids: readonly string[], messageIds: readonly string[]): Promise<readonly (FoundMessage & MessageContent)[]> {
  const conditions = [
    ...(ids.length > 0 ? [`m.id IN (${ids.join(', ')})`] : []),
    ...(messageIds.length > 0 ? [`m.message_id IN (${messageIds.map(() => '?').join(', ')})`] : []),
  ];
  if (conditions.length === 0) return [];
  const rows = await read(sql, store, `(${conditions.join(' OR ')})`, messageIds, 'ORDER BY m.id', ', m.payload AS payload, m.headers AS headers');
  const content = new Map(rows.map((row) => [row.id, row as Row & MessageContent]));
  return (await withStates(sql, store, rows)).map((message) => ({
    ...message,
    payload: content.get(message.id)?.payload ?? null,
    headers: content.get(message.id)?.headers ?? null,
  }));
}

/** The counts of one topic. */
export interface TopicStats {
  readonly topic: string;
  readonly pending: number;
  readonly held: number;
  readonly dead: number;
  /** Keys whose messages wait for an operator. */
  readonly blockedKeys: number;
  readonly paused: boolean;
}

export interface TopicsReport {
  readonly topics: readonly TopicStats[];
  /** Whether `pending` of the topics was counted over the first 10,000 messages only. */
  readonly sampled: boolean;
  /** Whether all relays are paused. */
  readonly paused: boolean;
}

/** What waits, by topic. It reads what waits, and of the pending no more than the first. */
export async function topicsReport(sql: Sql, { dialect: { tables } }: OutboxStore): Promise<TopicsReport> {
  // A join, PostgreSQL may do by reading the whole log.
  const topicOf = `(SELECT m.topic FROM ${tables.message} m WHERE m.id = p.id)`;
  const sample = `SELECT ${topicOf} AS topic FROM (SELECT l.id AS id FROM ${tables.pending} l LIMIT ${SAMPLE}) p`;
  const rows = (await sql.query(
    `SELECT 'pending' AS kind, s.topic AS topic, COUNT(*) AS n FROM (${sample}) s WHERE s.topic IS NOT NULL GROUP BY s.topic
     UNION ALL SELECT 'held', h.topic, COUNT(*) FROM ${tables.held} h GROUP BY h.topic
     UNION ALL SELECT 'dead', d.topic, COUNT(*) FROM ${tables.dead} d GROUP BY d.topic
     UNION ALL SELECT 'blockedKeys', h.topic, COUNT(*) FROM ${tables.hold} h WHERE h.state IN ('blocked', 'stopped') GROUP BY h.topic
     UNION ALL SELECT 'paused', h.topic, COUNT(*) FROM ${tables.hold} h WHERE h.state = 'paused' AND h.message_key = '${TOPIC_HOLD_KEY}' GROUP BY h.topic
     UNION ALL SELECT 'lanes', '', COUNT(*) FROM ${tables.lane} l WHERE l.paused <> 0`,
  )) as { kind: 'pending' | 'held' | 'dead' | 'blockedKeys' | 'paused' | 'lanes'; topic: string; n: number | string }[];
  const topics = new Map<string, { topic: string; pending: number; held: number; dead: number; blockedKeys: number; paused: boolean }>();
  let [counted, paused] = [0, false];
  for (const { kind, topic, n } of rows) {
    const count = Number(n);
    if (kind === 'lanes') {
      paused = count > 0;
      continue;
    }
    const stats = topics.get(topic) ?? { topic, pending: 0, held: 0, dead: 0, blockedKeys: 0, paused: false };
    topics.set(topic, stats);
    if (kind === 'paused') stats.paused = count > 0;
    else stats[kind] = count;
    if (kind === 'pending') counted += count;
  }
  return { topics: [...topics.values()].sort((a, b) => (a.topic < b.topic ? -1 : 1)), sampled: counted >= SAMPLE, paused };
}

async function read(sql: Sql, { dialect }: OutboxStore, where: string, parameters: readonly (string | number)[], end: string, more = ''): Promise<readonly Row[]> {
  const { bind, idText, epochMs, tables } = dialect;
  return (await sql.query(
    bind(
      `SELECT ${idText('m.id')} AS id, m.message_id AS message_id, m.topic AS topic, m.message_key AS message_key, m.event_type AS event_type,
        m.status AS status, m.retry_count AS retry_count, m.last_error AS last_error,
        ${epochMs('m.created_at')} AS created_ms, ${epochMs('m.sent_at')} AS sent_ms${more}
       FROM ${tables.message} m WHERE ${where} ${end}`,
    ),
    [...parameters],
  )) as Row[];
}

async function withStates(sql: Sql, { dialect, lanes }: OutboxStore, rows: readonly Row[]): Promise<readonly FoundMessage[]> {
  const open = rows.filter(({ status }) => ENDED_AS[Number(status)] === undefined);
  const states = await openStates(sql, dialect, open.map(({ id, topic, message_key: key, message_id: messageId }) => {
    const keyed = { topic, key, messageId };
    return { id, ...keyed, lane: slotOf(topic, holdKey(keyed), lanes) };
  }));
  return rows.map((row) => ({
    id: row.id,
    messageId: row.message_id,
    topic: row.topic,
    key: row.message_key,
    type: row.event_type,
    state: ENDED_AS[Number(row.status)] ?? states.get(row.id) ?? 'lost',
    attempts: Number(row.retry_count),
    lastError: row.last_error,
    createdAt: new Date(Number(row.created_ms)),
    sentAt: row.sent_ms === null ? null : new Date(Number(row.sent_ms)),
  }));
}
