import type { ExecutionContext } from '@nestjs/common';
import { readCloudEvent } from './cloud-event';

/** Where a message lies in Kafka. */
export interface MessageOrigin {
  readonly topic: string;
  readonly partition: number;
  readonly offset: string;
  /** The record's time in milliseconds since 1970. */
  readonly timestamp: string | undefined;
}

/** A message as its transport has delivered it. */
export interface Delivery {
  readonly context: ExecutionContext;
  /** The headers as Nest decodes them; none on a transport other than Kafka. */
  readonly headers: Readonly<Record<string, unknown>>;
  readonly key: unknown;
  /** The value as Nest decodes it: text, what a JSON object or array says, bytes, or `null` for a tombstone. */
  readonly value: unknown;
  /** `undefined` on a transport other than Kafka. */
  readonly origin: MessageOrigin | undefined;
  /** Whether somebody waits for an answer. */
  readonly isRequest: boolean;
  /** Tells Kafka that this member of the group is alive. Rejects when the group is changing. */
  readonly heartbeat: (() => Promise<void>) | undefined;
  /** The client's consumer that has brought it. */
  readonly client: object | undefined;
  /** Stops the delivery of this partition; the rest of the consumer goes on. */
  readonly pause: (() => void) | undefined;
}

/** What is needed of Nest's `KafkaContext`, whose package is an optional peer. */
interface KafkaContext {
  getMessage(): KafkaMessage;
  getTopic(): string;
  getPartition(): number;
  getConsumer(): { pause?(topics: { topic: string; partitions: number[] }[]): void };
  getHeartbeat(): () => Promise<void>;
}

interface KafkaMessage {
  headers?: Record<string, unknown>;
  readonly key?: unknown;
  readonly value?: unknown;
  readonly offset: string;
  readonly timestamp?: string;
}

/** As `@nestjs/microservices` marks a method: 1 is `@MessagePattern`, 2 is `@EventPattern`. */
export const HANDLER_TYPE = 'microservices:handler_type';
export const MESSAGE_HANDLER = 1;

export function deliveryOf(context: ExecutionContext): Delivery {
  const rpc = context.switchToRpc();
  const transport: unknown = rpc.getContext();
  const wantsAnswer = Reflect.getMetadata(HANDLER_TYPE, context.getHandler()) === MESSAGE_HANDLER;
  if (!isKafkaContext(transport)) {
    return {
      context,
      headers: {},
      key: null,
      value: rpc.getData(),
      origin: undefined,
      isRequest: wantsAnswer,
      heartbeat: undefined,
      client: undefined,
      pause: undefined,
    };
  }
  const message = transport.getMessage();
  const headers = readCloudEvent(unpack(message.headers ?? {}));
  // The handler sees the same headers, whichever road the message has come.
  message.headers = headers;
  const [topic, partition] = [transport.getTopic(), transport.getPartition()];
  return {
    context,
    headers,
    key: message.key ?? null,
    // Not the payload: for a tombstone Nest gives the whole message as that.
    value: message.value ?? null,
    origin: { topic, partition, offset: message.offset, timestamp: message.timestamp },
    isRequest: wantsAnswer && Boolean(headers['kafka_correlationId']) && Boolean(headers['kafka_replyTopic']),
    heartbeat: transport.getHeartbeat(),
    client: transport.getConsumer(),
    pause: () => transport.getConsumer().pause?.([{ topic, partitions: [partition] }]),
  };
}

/** Change data capture puts all of an event's own headers into one, as a JSON object; the relay writes each by itself. */
function unpack(headers: Record<string, unknown>): Record<string, unknown> {
  const packed = headers['headers'];
  if (typeof packed !== 'object' || packed === null || Array.isArray(packed) || Buffer.isBuffer(packed)) return headers;
  const { headers: _packed, ...own } = headers;
  return { ...packed, ...own };
}

function isKafkaContext(context: unknown): context is KafkaContext {
  return (
    typeof context === 'object' &&
    context !== null &&
    ['getMessage', 'getTopic', 'getPartition', 'getConsumer', 'getHeartbeat'].every(
      (name) => typeof Reflect.get(context, name) === 'function',
    )
  );
}
