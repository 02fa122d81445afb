import type { TryOutcome } from '../bisect';
import { refused, unknown } from '../outcome';
import type { PublishFailure, PublishOutcome } from '../publisher';

/** Kafka's error codes that a produce request may be answered with. */
const NAMES: Readonly<Record<number, string>> = {
  [-1]: 'UNKNOWN_SERVER_ERROR',
  2: 'CORRUPT_MESSAGE',
  3: 'UNKNOWN_TOPIC_OR_PARTITION',
  5: 'LEADER_NOT_AVAILABLE',
  6: 'NOT_LEADER_OR_FOLLOWER',
  7: 'REQUEST_TIMED_OUT',
  8: 'BROKER_NOT_AVAILABLE',
  9: 'REPLICA_NOT_AVAILABLE',
  10: 'MESSAGE_TOO_LARGE',
  13: 'NETWORK_EXCEPTION',
  17: 'INVALID_TOPIC_EXCEPTION',
  18: 'RECORD_LIST_TOO_LARGE',
  19: 'NOT_ENOUGH_REPLICAS',
  20: 'NOT_ENOUGH_REPLICAS_AFTER_APPEND',
  21: 'INVALID_REQUIRED_ACKS',
  29: 'TOPIC_AUTHORIZATION_FAILED',
  31: 'CLUSTER_AUTHORIZATION_FAILED',
  32: 'INVALID_TIMESTAMP',
  35: 'UNSUPPORTED_VERSION',
  42: 'INVALID_REQUEST',
  43: 'UNSUPPORTED_FOR_MESSAGE_FORMAT',
  44: 'POLICY_VIOLATION',
  45: 'OUT_OF_ORDER_SEQUENCE_NUMBER',
  46: 'DUPLICATE_SEQUENCE_NUMBER',
  47: 'INVALID_PRODUCER_EPOCH',
  56: 'KAFKA_STORAGE_ERROR',
  59: 'UNKNOWN_PRODUCER_ID',
  76: 'UNSUPPORTED_COMPRESSION_TYPE',
  87: 'INVALID_RECORD',
  89: 'THROTTLING_QUOTA_EXCEEDED',
};

/**
 * Refusals that may be the fault of one record among others. CORRUPT_MESSAGE is among them because older brokers say
 * so of a record without key on a compacted topic; where it really was the wire, the next attempt passes.
 */
const BY_RECORD = new Set([
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_RECORD',
  'CORRUPT_MESSAGE',
  'INVALID_TIMESTAMP',
  'POLICY_VIOLATION',
]);

/** Refusals of all records of a topic alike: nothing to be found by halving. */
const BY_TOPIC = new Set([
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
  'UNSUPPORTED_FOR_MESSAGE_FORMAT',
]);

/** The outcome of a record whose partition was answered with this error. */
export function outcomeOfCode(errorCode: number, unit: string): TryOutcome {
  const code = NAMES[errorCode] ?? `KAFKA_ERROR_${errorCode}`;
  const message = `the broker answered ${code} for ${unit}`;
  if (BY_RECORD.has(code)) return { status: 'refused-together', unit, failure: { code, message } };
  return BY_TOPIC.has(code) ? refused(code, message) : unknown(code, message);
}

/** The outcome of a record that was not answered, from why the client failed. */
export function outcomeOfFailure({ code, message }: PublishFailure): PublishOutcome {
  return BY_TOPIC.has(code) ? refused(code, message) : unknown(code, message);
}
