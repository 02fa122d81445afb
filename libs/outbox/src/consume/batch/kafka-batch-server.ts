import {
  type CustomTransportStrategy,
  type Deserializer,
  KafkaContext,
  type MessageHandler,
  ServerKafka,
} from '@nestjs/microservices';
import type { Consumer, ConsumerRunConfig, EachBatchPayload, EachMessageHandler, KafkaMessage } from 'kafkajs';
import { ConsumerMisplacedError } from '../../errors';
import { BATCH_SIZE, KafkaBatch, type KafkaBatchItem } from './kafka-batch';

/**
 * Nest's Kafka server, with the same options, that hands fetched batches to handlers with `@IdempotentBatchConsumer`
 * and single messages to all others:
 *
 * ```ts
 * app.connectMicroservice({ strategy: new KafkaBatchServer({ client: { brokers }, consumer: { groupId } }) });
 * ```
 */
export class KafkaBatchServer extends ServerKafka implements CustomTransportStrategy {
  /**
   * @internal
   * @throws ConsumerMisplacedError when a batch handler shares its topic with another handler
   */
  override async bindEvents(consumer: Consumer): Promise<void> {
    for (const [topic, handler] of this.messageHandlers) assertAlone(topic, handler);
    const run = ({ eachMessage, ...config }: ConsumerRunConfig = {}): Promise<void> =>
      consumer.run({
        ...config,
        eachBatchAutoResolve: false,
        eachBatch: (payload) => this.handleBatch(payload, eachMessage as EachMessageHandler),
      });
    await super.bindEvents(Object.assign(Object.create(consumer) as Consumer, { run }));
  }

  /** As kafkajs does it for single messages: what is done is resolved, an error ends the batch, a heartbeat between. */
  private async handleBatch(payload: EachBatchPayload, eachMessage: EachMessageHandler): Promise<void> {
    const { batch, heartbeat, pause, resolveOffset, commitOffsetsIfNecessary, isRunning, isStale } = payload;
    const { topic, partition, messages } = batch;
    const size = batchSizeOf(this.getHandlerByPattern(topic));
    for (let start = 0; start < messages.length; start += size ?? 1) {
      if (!isRunning() || isStale() || this.isPaused(topic, partition)) return;
      const chunk = messages.slice(start, start + (size ?? 1));
      if (size === undefined) {
        for (const message of chunk) await eachMessage({ topic, partition, message, heartbeat, pause });
      } else await this.handleChunk(payload, chunk);
      resolveOffset(chunk.at(-1)?.offset ?? batch.lastOffset());
      await heartbeat();
      await commitOffsetsIfNecessary();
    }
  }

  private isPaused(topic: string, partition: number): boolean {
    return this.consumer?.paused().some((paused) => paused.topic === topic && paused.partitions.includes(partition)) ?? false;
  }

  private async handleChunk({ batch, heartbeat, resolveOffset }: EachBatchPayload, chunk: readonly KafkaMessage[]): Promise<void> {
    const { topic, partition } = batch;
    const items: KafkaBatchItem[] = [];
    const { consumer, parser, producer } = this;
    // Nest has closed the server meanwhile: nothing is resolved, so all of it comes again.
    if (!consumer || !parser || !producer) throw new Error('The Kafka server is closed.');
    for (const message of chunk) {
      const raw = parser.parse(Object.assign(message, { topic, partition }));
      const { data } = await (this.deserializer as Deserializer).deserialize(raw, { channel: topic });
      const context = new KafkaContext([raw, partition, topic, consumer, heartbeat, producer]);
      items.push({ data, context });
    }
    const [first] = items;
    if (!first) return;
    await this.handleEvent(topic, { pattern: topic, data: new KafkaBatch(items, resolveOffset) }, first.context as KafkaContext);
  }
}

function batchSizeOf(handler: MessageHandler | null): number | undefined {
  const size: unknown = handler?.extras?.[BATCH_SIZE];
  return typeof size === 'number' ? size : undefined;
}

function assertAlone(topic: string, head: MessageHandler): void {
  const chain: MessageHandler[] = [];
  for (let handler: MessageHandler | undefined = head; handler; handler = handler.next as MessageHandler | undefined) {
    chain.push(handler);
  }
  if (chain.length < 2 || chain.every((handler) => batchSizeOf(handler) === undefined)) return;
  throw new ConsumerMisplacedError(
    `A handler with @IdempotentBatchConsumer must be the only one of its topic in a server: ${String(topic)} has ${chain.length}.`,
  );
}
