import type { Message, TopicMessages } from 'kafkajs';
import type { PublishRecord } from '../publisher';

export function toMessage(record: PublishRecord): Message {
  return {
    key: record.key,
    value: record.value,
    headers: record.headers,
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
