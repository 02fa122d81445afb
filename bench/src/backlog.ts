import { fill, openWriter } from './app.js';
import type { Bench } from './arguments.js';
import { drainBy } from './drain-by.js';
import { eventClass } from './event.js';
import { withTopic } from './raw-client.js';
import { RelayProcess } from './relay-process.js';
import { withServers } from './servers.js';
import { median, medians, rate } from './statistics.js';

/** Messages that wait for each one that is drained. */
const DEPTH = 20;

/** Whether the first messages of a long backlog are drained as fast as the same number alone. */
export const benchBacklog: Bench = (options) =>
  withServers(options, 'with Kafka', async ({ database, brokers, surroundings }) =>
    withTopic(brokers, async (topic) => {
      const size = options.size ?? (options.smoke ? 100 : 50_000);
      const type = eventClass(topic);
      const writer = await openWriter(database);
      const relay = await RelayProcess.open({ database, brokers, client: options.client, relay: { settle: options.settle } });
      const drain = async (messages: number): Promise<number> => {
        const { milliseconds } = await drainBy([relay], messages);
        await relay.stop();
        return rate(messages, milliseconds);
      };
      try {
        await fill(writer, type, Math.ceil(size / 10));
        await drain(Math.ceil(size / 10));
        const alone: number[] = [];
        for (let run = 0; run < options.runs; run++) {
          await fill(writer, type, size);
          alone.push(await drain(size));
        }
        await fill(writer, type, size * DEPTH);
        const ofMany: number[] = [];
        for (let run = 0; run < options.runs; run++) ofMany.push(await drain(size));
        const figures = { alonePerSecond: median(alone), ofManyPerSecond: median(ofMany), ratio: median(ofMany) / median(alone) };
        return { ...medians([figures]), messages: size, pending: size * DEPTH, ...surroundings };
      } finally {
        await relay.end();
        await writer.close();
      }
    }),
  );
