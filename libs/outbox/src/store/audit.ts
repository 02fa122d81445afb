import { type ChangingSql, type Connection, inTransaction } from './connection';
import type { Dialect, Sql } from './dialect';
import type { PurgeLimits, Purged } from './purge';

/** An act as it is written down when it begins. `target` is JSON. */
export interface NotedAct {
  readonly act: string;
  readonly by: string;
  readonly reason: string;
  readonly target: string;
}

/** What operators' acts are looked for. All that is given must be true of an act. */
export interface AuditFilter {
  /** What was done, such as `requeue`. */
  readonly act?: string;
  readonly by?: string;
  /** A message that it was done to: its id in the log, or its message id while the log has it. */
  readonly message?: string;
  /** Begun at this time or later, by the database's clock. */
  readonly from?: Date;
  /** Begun before this time. */
  readonly to?: Date;
}

/** An act of an operator. */
export interface AuditedAct {
  readonly id: string;
  /** `requeue`, `discard`, `replay`, `replay dead letters`, `block`, `release`, `pause`, `resume` or `purge`. */
  readonly act: string;
  readonly by: string;
  readonly reason: string;
  /** What it was for, as it was given. */
  readonly target: unknown;
  /** `begun`: it is under way, or its process has ended in the middle of it. */
  readonly outcome: 'begun' | 'done' | 'failed';
  /** What has come of it, so far where it is only begun; `null` when nothing is known yet. */
  readonly result: unknown;
  readonly beganAt: Date;
  readonly endedAt: Date | null;
}

export interface AuditPage {
  /** Newest first. */
  readonly acts: readonly AuditedAct[];
  /** Give it as `before` for the next page; `null` at the end. */
  readonly next: string | null;
}

/** @returns the id of the act */
export async function beginAct(connection: Connection, { tables, bind, now, lastId }: Dialect, { act, by, reason, target }: NotedAct): Promise<string> {
  return inTransaction(connection, async () => {
    await connection.query(bind(`INSERT INTO ${tables.audit} (act, acted_by, reason, target, outcome, began_at) VALUES (?, ?, ?, ?, 'begun', ${now})`), [act, by, reason, target]);
    const [row] = (await connection.query(`SELECT ${lastId} AS id`)) as { id: number | string }[];
    return String(row?.id);
  });
}

/** Writes down what an act has come to so far, and the messages that it was just done to. */
export async function noteAct(sql: Sql, { tables, bind }: Dialect, id: string, result: string, ids: readonly string[]): Promise<void> {
  await sql.query(bind(`UPDATE ${tables.audit} SET result = ? WHERE id = ${id}`), [result]);
  if (ids.length > 0) await sql.query(`INSERT INTO ${tables.auditMessage} (audit_id, id) VALUES ${ids.map((message) => `(${id}, ${message})`).join(', ')}`);
}

export async function endAct(sql: Sql, { tables, bind, now }: Dialect, id: string, outcome: 'done' | 'failed', result: string): Promise<void> {
  await sql.query(bind(`UPDATE ${tables.audit} SET outcome = '${outcome}', result = ?, ended_at = ${now} WHERE id = ${id}`), [result]);
}

/** A page of acts, newest first, from behind `before` where that is given. `messages` are ids of the log. */
export async function findActs(sql: Sql, { tables, bind, idText, idIn, epochMs }: Dialect, { act, by, from, to }: AuditFilter, messages: readonly string[] | undefined, before: string | undefined, limit: number): Promise<AuditPage> {
  const given = [
    ['a.act = ?', act],
    ['a.acted_by = ?', by],
    [`${epochMs('a.began_at')} >= ?`, from?.getTime()],
    [`${epochMs('a.began_at')} < ?`, to?.getTime()],
  ].filter((pair): pair is [string, string | number] => pair[1] !== undefined);
  if (messages?.length === 0) return { acts: [], next: null };
  const conditions = [
    ...given.map(([condition]) => condition),
    ...(before === undefined ? [] : [`a.id < ${before}`]),
    ...(messages === undefined ? [] : [`a.id IN (SELECT w.audit_id FROM ${tables.auditMessage} w WHERE ${idIn('w.id', messages)})`]),
  ];
  const rows = (await sql.query(
    bind(
      `SELECT ${idText('a.id')} AS id, a.act AS act, a.acted_by AS acted_by, a.reason AS reason, a.target AS target, a.outcome AS outcome, a.result AS result,
        ${epochMs('a.began_at')} AS began_ms, ${epochMs('a.ended_at')} AS ended_ms
       FROM ${tables.audit} a ${conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''} ORDER BY a.id DESC LIMIT ${limit + 1}`,
    ),
    given.map(([, value]) => value),
  )) as { id: string; act: string; acted_by: string; reason: string; target: string; outcome: AuditedAct['outcome']; result: string | null; began_ms: number | string; ended_ms: number | string | null }[];
  const acts = rows.slice(0, limit).map(({ id, act, acted_by, reason, target, outcome, result, began_ms, ended_ms }) => ({
    id,
    act,
    by: acted_by,
    reason,
    target: JSON.parse(target) as unknown,
    outcome,
    result: result === null ? null : (JSON.parse(result) as unknown),
    beganAt: new Date(Number(began_ms)),
    endedAt: ended_ms === null ? null : new Date(Number(ended_ms)),
  }));
  return { acts, next: rows.length > limit ? (acts.at(-1)?.id ?? null) : null };
}

/** Takes old acts away, oldest first, and before each the messages that it was done to. */
export async function purgeAudit(sql: ChangingSql, { tables, bind, idText, idIn, nowPlusMs, deleteByKey }: Dialect, limits: PurgeLimits): Promise<Purged> {
  const first = (await sql.query(
    bind(`SELECT ${idText('a.id')} AS id, CASE WHEN a.began_at < ${nowPlusMs} THEN 1 ELSE 0 END AS old FROM ${tables.audit} a ORDER BY a.id LIMIT ${limits.rows}`),
    [-limits.age],
  )) as { id: string; old: number | string }[];
  const ids = first.filter(({ old }) => Number(old) === 1).map(({ id }) => id);
  if (ids.length === 0) return { purged: 0, next: null };
  const messages = (await sql.query(
    `SELECT ${idText('w.audit_id')} AS audit_id, ${idText('w.id')} AS id FROM ${tables.auditMessage} w WHERE ${idIn('w.audit_id', ids)} ORDER BY w.audit_id, w.id LIMIT ${limits.rows}`,
  )) as { audit_id: string; id: string }[];
  if (messages.length > 0) {
    const { sql: statement, parameters } = deleteByKey('auditMessage', messages.map(({ audit_id, id }) => [audit_id, id]));
    await sql.change(bind(statement), parameters);
  }
  if (messages.length === limits.rows) return { purged: 0, next: '0' };
  const { sql: statement, parameters } = deleteByKey('audit', ids.map((id) => [id]));
  return { purged: await sql.change(bind(statement), parameters), next: ids.length === limits.rows ? '0' : null };
}
