import { OperationInvalidError } from '../errors';
import { isTopic, MAX_NAME_LENGTH } from '../event/to-message';
import type { AuditFilter } from '../store/audit';
import type { MessageFilter } from '../store/look';

export interface IdLists {
  readonly ids: readonly string[];
  readonly messageIds: readonly string[];
  /** What cannot be the id of any message. */
  readonly invalid: readonly string[];
}

const LOG_ID = /^[1-9]\d{0,17}$/;
const MESSAGE_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Tells ids of the log from message ids. @throws OperationInvalidError for what is no text */
export function checkIds(given: readonly string[]): IdLists {
  const [ids, messageIds, invalid]: [string[], string[], string[]] = [[], [], []];
  for (const id of new Set(given)) {
    if (typeof id !== 'string') throw new OperationInvalidError(`An id must be a text, not ${typeof id}.`);
    if (LOG_ID.test(id)) ids.push(id);
    else if (MESSAGE_ID.test(id)) messageIds.push(id.toLowerCase());
    else invalid.push(id);
  }
  return { ids, messageIds, invalid };
}

const FILTERS: Record<keyof MessageFilter, 'string' | 'date'> = {
  topic: 'string',
  key: 'string',
  type: 'string',
  state: 'string',
  from: 'date',
  to: 'date',
};
const STATES = ['pending', 'held', 'dead', 'sent', 'discarded', 'lost'];

const AUDIT_FILTERS: Record<keyof AuditFilter, 'string' | 'date'> = { act: 'string', by: 'string', message: 'string', from: 'date', to: 'date' };

/** @throws OperationInvalidError naming what is wrong */
export function checkAuditFilter(filter: AuditFilter): void {
  checkParts(filter, AUDIT_FILTERS);
}

/** @throws OperationInvalidError naming what is wrong: a filter that is not understood must not find everything */
export function checkFilter(filter: MessageFilter): void {
  checkParts(filter, FILTERS);
  // MySQL and MariaDB refuse to compare a topic with what none can be called.
  if (filter.topic !== undefined) checkTopic(filter.topic);
  if (filter.state !== undefined && !STATES.includes(filter.state)) {
    throw new OperationInvalidError(`There is no state "${String(filter.state)}". Known are: ${STATES.join(', ')}.`);
  }
}

/** PostgreSQL takes no text with a NUL. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !value.includes('\0');
}

function checkParts(filter: object, known: Readonly<Record<string, 'string' | 'date'>>): void {
  for (const [name, value] of Object.entries(filter) as [string, unknown][]) {
    const kind = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!kind) throw new OperationInvalidError(`There is no filter "${name}". Known are: ${Object.keys(known).join(', ')}.`);
    if (value === undefined) throw new OperationInvalidError(`The filter ${name} is undefined: leave it out to find all.`);
    const isRight = kind === 'date' ? value instanceof Date && !Number.isNaN(value.getTime()) : isText(value);
    if (!isRight) throw new OperationInvalidError(`The filter ${name} must be a ${kind === 'date' ? 'valid date' : 'text'}.`);
  }
}

/** @throws OperationInvalidError */
export function checkLimit(limit: unknown, most: number): void {
  if (typeof limit === 'number' && Number.isSafeInteger(limit) && limit >= 1 && limit <= most) return;
  const upTo = most === Number.MAX_SAFE_INTEGER ? '' : ` and at most ${most}`;
  throw new OperationInvalidError(`limit must be a whole number of at least 1${upTo}, not ${String(limit)}.`);
}

/** @throws OperationInvalidError when it is no place in the log that an earlier look has given */
export function checkPlace(name: string, place: unknown): void {
  if (typeof place === 'string' && /^\d{1,18}$/.test(place)) return;
  throw new OperationInvalidError(`${name} must be what an earlier page or look has given, not "${String(place)}".`);
}

/** @throws OperationInvalidError */
export function checkKey(key: unknown): void {
  if (!isText(key) || key.length > MAX_NAME_LENGTH) throw new OperationInvalidError(`A key must be a text of 1 to ${MAX_NAME_LENGTH} characters.`);
}

/** @throws OperationInvalidError */
export function checkTopic(topic: unknown): void {
  if (typeof topic !== 'string' || !isTopic(topic)) throw new OperationInvalidError(`"${String(topic)}" is not the name of a topic.`);
}
