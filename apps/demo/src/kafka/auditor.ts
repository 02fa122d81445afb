import type { Consumer, EachMessagePayload, IHeaders, Producer } from 'kafkajs';
import { Topics } from '../../../shop/src/topics.js';
import type { TopicRecord } from './topic-record.js';
import type { World } from './world.js';

/** One in so many messages is sent again. */
const RESENT = 10;

/**
 * Reads the topics from their beginning with a plain Kafka client, so that the library does not vouch for itself, and
 * sends every tenth order message again, byte by byte.
 */
export class Auditor {
  readonly orders: TopicRecord[] = [];
  readonly stock: TopicRecord[] = [];
  resent = 0;
  private readonly ids = new Set<string>();
  private readonly consumer: Consumer;
  private readonly producer: Producer;

  constructor(world: World) {
    const kafka = world.kafka('demo-auditor');
    this.consumer = kafka.consumer({ groupId: `${world.topicPrefix}auditor` });
    this.producer = kafka.producer({ allowAutoTopicCreation: false });
  }

  async start(): Promise<void> {
    await Promise.all([this.consumer.connect(), this.producer.connect()]);
    await this.consumer.subscribe({ topics: Object.values(Topics), fromBeginning: true });
    await this.consumer.run({ eachMessage: (payload) => this.read(payload) });
  }

  async stop(): Promise<void> {
    await Promise.all([this.consumer.disconnect(), this.producer.disconnect()]);
  }

  private async read({ topic, message }: EachMessagePayload): Promise<void> {
    const headers = message.headers ?? {};
    const record = {
      id: String(headers['id']),
      key: String(message.key),
      value: String(message.value),
      headers: JSON.stringify(asText(headers)),
    };
    if (topic === Topics.stock) {
      this.stock.push(record);
      return;
    }
    this.orders.push(record);
    if (this.ids.has(record.id)) return;
    this.ids.add(record.id);
    if (this.ids.size % RESENT !== 0) return;
    const { key, value, timestamp } = message;
    await this.producer.send({ topic, messages: [{ key, value, headers, timestamp }] });
    this.resent += 1;
  }
}

function asText(headers: IHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
