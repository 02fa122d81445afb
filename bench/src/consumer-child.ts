import type { BenchEvent } from './event.js';
import { now } from './clock.js';
import { kafkaJs } from './raw-client.js';

/** A consumer in a process of its own, which notes when its handler is called. */
const { brokers, topic } = JSON.parse(process.env['BENCH_CONSUMER'] ?? '{}') as { brokers: string[]; topic: string };
let arrivals: [n: number, at: number][] = [];

const consumer = kafkaJs(brokers).consumer({ groupId: topic });
consumer.on(consumer.events.GROUP_JOIN, () => process.send?.('ready'));
await consumer.connect();
await consumer.subscribe({ topic, fromBeginning: true });
await consumer.run({
  eachMessage: async ({ message }) => {
    const at = now();
    arrivals.push([(JSON.parse(message.value?.toString() ?? '{}') as BenchEvent).n, at]);
  },
});

process.on('message', () => {
  process.send?.(arrivals);
  arrivals = [];
});
process.once('disconnect', () => process.exit());
