import type { PublishOutcome, PublishRecord } from './publisher';

export type Refused = Extract<PublishOutcome, { status: 'refused' }>;
export type Unknown = Extract<PublishOutcome, { status: 'unknown' }>;

/** How a publisher says that a topic does not exist. */
export const TOPIC_MISSING = 'UNKNOWN_TOPIC_OR_PARTITION';
/** How a publisher of several roads says that the topic's road is away, and another one is open. */
export const ROUTE_AWAY = 'ROUTE_AWAY';

/**
 * Codes of `unknown` that are the topic's own and may last: its messages wait apart, so that those of other topics pass
 * them, and that counts as no attempt.
 */
export const TOPIC_WAITS: ReadonlySet<string> = new Set([
  TOPIC_MISSING,
  ROUTE_AWAY,
  'NOT_ENOUGH_REPLICAS',
  'NOT_ENOUGH_REPLICAS_AFTER_APPEND',
]);

/** The same, once they have lasted: for a moment they belong to every change of a leader. */
export const TOPIC_MAY_WAIT: ReadonlySet<string> = new Set([
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_OR_FOLLOWER',
  'REPLICA_NOT_AVAILABLE',
  'KAFKA_STORAGE_ERROR',
]);

export function acknowledged(partition: number, offset: string | null): PublishOutcome {
  return { status: 'acknowledged', partition, offset };
}

export function refused(code: string, message: string): Refused {
  return { status: 'refused', failure: { code, message } };
}

export function unknown(code: string, message: string): Unknown {
  return { status: 'unknown', failure: { code, message } };
}

/** What a later record of a key gets when an earlier one was not stored: it was not sent. */
export function behind(status: 'refused' | 'unknown'): Unknown {
  return status === 'refused'
    ? unknown('BEHIND_REFUSED', 'not sent: an earlier record of its key was refused')
    : unknown('BEHIND_UNKNOWN', 'not sent: it is not known whether an earlier record of its key was stored');
}

/** Identifies the order that a record is part of, or `null` when it is part of none. */
export function orderOf(record: PublishRecord): string | null {
  return record.key === null ? null : `${record.topic} ${record.key}`;
}
