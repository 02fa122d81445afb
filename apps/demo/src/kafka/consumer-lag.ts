import type { Admin } from 'kafkajs';

/** Records of the topic that the group has not taken yet. */
export async function consumerLag(admin: Admin, groupId: string, topic: string): Promise<number> {
  const [ends, [committed]] = await Promise.all([
    admin.fetchTopicOffsets(topic),
    admin.fetchOffsets({ groupId, topics: [topic] }),
  ]);
  const taken = new Map(committed?.partitions.map(({ partition, offset }) => [partition, Number(offset)]));
  // A partition that the group never committed has offset -1.
  return ends.reduce((lag, { partition, high }) => lag + Number(high) - Math.max(0, taken.get(partition) ?? 0), 0);
}
