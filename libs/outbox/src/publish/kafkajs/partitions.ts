import { randomInt } from 'node:crypto';
import type { ICustomPartitioner, Message, PartitionerArgs } from 'kafkajs';
import { partitionOf } from '../partitioner';

/**
 * Chooses partitions for kafkajs, and remembers which message went where. A message keeps its partition when kafkajs
 * tries again: an idempotent producer would otherwise send other records under the sequence numbers of those that are
 * already stored, and the broker would drop them as repeats.
 */
export class Partitions {
  private chosen = new Map<Message, number>();

  constructor(private readonly create: ICustomPartitioner = defaultPartitioner) {}

  /** For kafkajs's `createPartitioner`. */
  readonly createPartitioner: ICustomPartitioner = () => {
    const choose = this.create();
    return (args) => {
      const before = this.chosen.get(args.message);
      if (before !== undefined) return before;
      const partition = choose(args);
      this.chosen.set(args.message, partition);
      return partition;
    };
  };

  /** Forgets the batch before. */
  begin(): void {
    this.chosen = new Map();
  }

  of(message: Message): number | undefined {
    return this.chosen.get(message);
  }
}

/** By the key, as Kafka's Java client does it; records without a key in turn. */
const defaultPartitioner: ICustomPartitioner = () => {
  let keyless = randomInt(2 ** 31);
  return ({ partitionMetadata, message }: PartitionerArgs): number => {
    const { key } = message;
    if (key !== null && key !== undefined) return partitionOf(key, partitionMetadata.length);
    const reachable = partitionMetadata.filter(({ leader }) => leader >= 0);
    const among = reachable.length > 0 ? reachable : partitionMetadata;
    return among[keyless++ % among.length]?.partitionId ?? 0;
  };
};
