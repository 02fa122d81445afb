import type { Message, TopicMessages } from 'kafkajs';
import type { PublishRecord } from '../publisher';
import type { Partitions } from './partitions';
import { unitOf } from './produce-protocol';

/** Where a record went in its batch. */
export interface Place {
  readonly partition: number;
  readonly unit: string;
  /** How many records of the batch lie before it in the partition. */
  readonly index: number;
}

export function toMessage(record: PublishRecord): Message {
  return {
    key: record.key,
    value: record.value,
    headers: { ...record.headers },
    timestamp: String(record.timestamp),
  };
}

export function groupByTopic(records: readonly PublishRecord[], messages: readonly Message[]): TopicMessages[] {
  const topics = new Map<string, Message[]>();
  records.forEach(({ topic }, index) => {
    const message = messages[index];
    if (message === undefined) return;
    const group = topics.get(topic);
    if (group === undefined) topics.set(topic, [message]);
    else group.push(message);
  });
  return [...topics].map(([topic, group]) => ({ topic, messages: group }));
}

/** The place of each record, `null` where the client did not come as far as to choose one. */
export function placesOf(
  records: readonly PublishRecord[],
  messages: readonly Message[],
  partitions: Partitions,
): (Place | null)[] {
  const counts = new Map<string, number>();
  return records.map(({ topic }, position) => {
    const message = messages[position];
    const partition = message === undefined ? undefined : partitions.of(message);
    if (partition === undefined) return null;
    const unit = unitOf(topic, partition);
    const index = counts.get(unit) ?? 0;
    counts.set(unit, index + 1);
    return { partition, unit, index };
  });
}
