import { OutboxOptionsError } from '../errors';

/** The names of the outbox's tables. */
export interface TableNames {
  /** The log: one row for each message. */
  readonly message: string;
  /** One narrow row for each message that is not sent yet. */
  readonly pending: string;
  /** One row for each lane; locking it is the right to send the lane's messages. */
  readonly lane: string;
  /** One row for each order bucket; locking it makes ids of one key follow the order of commits. */
  readonly bucket: string;
  /** One row for each key whose first message was refused, and for each lane of a topic that does not exist. */
  readonly hold: string;
  /** One row for each message that waits behind a hold. */
  readonly held: string;
  /** One row for each batch of messages that were sent, until the sweeper has brought the log up to date. */
  readonly settled: string;
  /** One row for each message that was given up: the log is too large to count them there. */
  readonly dead: string;
  /** The rows of the log that the cleaner has taken out of it, where it keeps them. */
  readonly history: string;
  /** One row for each act of an operator: who, why, on what, and what has come of it. */
  readonly audit: string;
  /** One row for each message that an act was done to. */
  readonly auditMessage: string;
  /** One row for each message that a consumer has handled. */
  readonly consumed: string;
  /** One row for each message that a consumer has failed on. */
  readonly failure: string;
  /** One row for each key of a consumer that keeps events in sequence. */
  readonly sequence: string;
}

const DEFAULT_NAMES: TableNames = {
  message: 'outbox_message',
  pending: 'outbox_pending',
  lane: 'outbox_lane',
  bucket: 'outbox_bucket',
  hold: 'outbox_hold',
  held: 'outbox_held',
  settled: 'outbox_settled',
  dead: 'outbox_dead',
  history: 'outbox_history',
  audit: 'outbox_audit',
  auditMessage: 'outbox_audit_message',
  consumed: 'consumed_message',
  failure: 'consumed_failure',
  sequence: 'consumed_sequence',
};

/** Lanes that a relay can work on side by side. Fixed when the tables are made. */
export const DEFAULT_LANES = 64;

/** Locks that spread writers who keep commit order. Every writer must use the same number. */
export const ORDER_BUCKETS = 1024;

/**
 * When a message was sent, from columns that have a value from the start. A column of its own that is filled in later
 * makes each row longer, for which InnoDB divides its pages: marking takes two to four times as long.
 */
export const SENT_AT = 'CASE WHEN status = 1 THEN updated_at END';

/** What the migration and the module must agree on. */
export interface SchemaOptions {
  /** Other names for the tables: letters, digits and underscores, at most 50. */
  readonly tables?: Partial<TableNames>;
  /** Number of lanes, 1 to 1024. Default 64. Fixed when the tables are made. */
  readonly lanes?: number;
}

/** @throws OutboxOptionsError */
export function tableNames(options: SchemaOptions): TableNames {
  const names = { ...DEFAULT_NAMES, ...options.tables };
  for (const [table, name] of Object.entries(names)) {
    if (!Object.hasOwn(DEFAULT_NAMES, table)) throw new OutboxOptionsError(`tables: there is no table "${table}".`);
    if (typeof name !== 'string' || !/^[A-Za-z_][A-Za-z0-9_]{0,49}$/.test(name)) {
      throw new OutboxOptionsError(`tables.${table}: "${name}" is not a name of at most 50 letters, digits and _.`);
    }
  }
  return names;
}

/** @throws OutboxOptionsError */
export function laneCount({ lanes = DEFAULT_LANES }: SchemaOptions): number {
  if (!Number.isInteger(lanes) || lanes < 1 || lanes > 1024) {
    throw new OutboxOptionsError(`lanes must be a whole number from 1 to 1024, not ${lanes}.`);
  }
  return lanes;
}
