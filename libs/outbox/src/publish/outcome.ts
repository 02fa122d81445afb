import type { PublishOutcome, PublishRecord } from './publisher';

export type Refused = Extract<PublishOutcome, { status: 'refused' }>;
export type Unknown = Extract<PublishOutcome, { status: 'unknown' }>;

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
