import { Logger } from '@nestjs/common';
import type { MessageContext } from '../../event/message-context';
import type { OutboxTracing } from '../../event/tracing';
import type { ConsumerMetadata } from '../consumer-metadata';
import type { Delivery, MessageOrigin } from '../delivery';
import type { IdempotentRunner } from '../idempotent-runner';
import { incomingContext } from '../incoming-context';
import { keepAlive } from '../keep-alive';
import type { MessageConsumer } from '../message-consumer';
import { namedReasonOf } from '../reason-of';

/** A message that a batch handler is given, as its `@Ctx()`, in the order of the payloads. */
export interface BatchMessage {
  readonly messageId: string;
  /** The event of a typed consumer, else what Nest makes of the value. */
  readonly payload: unknown;
  readonly key: unknown;
  readonly headers: Readonly<Record<string, unknown>>;
  /** `undefined` on a transport other than Kafka. */
  readonly origin: MessageOrigin | undefined;
  /** What follows from this message should be emitted in: `withMessageContext(message.context, …)`. */
  readonly context: MessageContext;
}

export type HandleBatch = (messages: readonly BatchMessage[]) => Promise<unknown>;

/** Takes several deliveries of one partition through a consumer in one transaction, or else one by one. */
export class BatchConsumer {
  private readonly logger = new Logger('OutboxConsumer');

  constructor(
    private readonly consumers: MessageConsumer,
    private readonly runner: IdempotentRunner,
    private readonly tracing?: OutboxTracing,
  ) {}

  /** Says after each delivery that it is done. Rejects to have the rest delivered again. */
  async consume(
    consumer: ConsumerMetadata,
    deliveries: readonly Delivery[],
    handle: HandleBatch,
    done: (delivery: Delivery) => void,
  ): Promise<void> {
    const messages = deliveries.map((delivery) => this.read(consumer, delivery));
    const isHandled = await this.together(consumer, deliveries, messages.filter((one) => one !== undefined), handle);
    for (const [index, delivery] of deliveries.entries()) {
      const message = messages[index];
      // What is unwanted or cannot be read takes the way of a single message in any case.
      if (!message || !isHandled) {
        await this.consumers.consume(consumer, delivery, (event) => handle([asMessage(delivery, message?.messageId ?? '', event)]));
      }
      done(delivery);
    }
  }

  private async together(
    consumer: ConsumerMetadata,
    [first]: readonly Delivery[],
    messages: readonly BatchMessage[],
    handle: HandleBatch,
  ): Promise<boolean> {
    if (messages.length === 0 || !first) return true;
    const { concurrentCopies } = this.consumers.policyOf(consumer);
    try {
      const run = (): Promise<unknown> =>
        keepAlive(first, () => this.runner.runBatch(consumer.name, messages, handle, { concurrentCopies }));
      const traced = messages.map(({ messageId, origin, context }) => ({ messageId, topic: origin?.topic, context }));
      await (this.tracing ? this.tracing.consume(consumer.name, traced, run) : run());
      return true;
    } catch (error) {
      this.logger.warn(`${consumer.name}: a batch of ${messages.length} failed and is handled one by one: ${namedReasonOf(error)}`);
      return false;
    }
  }

  private read(consumer: ConsumerMetadata, delivery: Delivery): BatchMessage | undefined {
    try {
      const read = this.consumers.read(consumer, delivery);
      return read && asMessage(delivery, read.messageId, read.event);
    } catch {
      return undefined;
    }
  }
}

function asMessage(delivery: Delivery, messageId: string, event: object | undefined): BatchMessage {
  const { headers, key, origin, context } = delivery;
  const payload: unknown = event ?? context.switchToRpc().getData();
  return { messageId, payload, key, headers, origin, context: incomingContext(messageId, headers) };
}
