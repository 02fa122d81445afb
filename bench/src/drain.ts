import { DataSource } from 'typeorm';
import { fill, openWriter } from './app.js';
import { type Bench, workersOf } from './arguments.js';
import { drainBy } from './drain-by.js';
import { eventClass } from './event.js';
import { openRawClient, sendMany, withTopic } from './raw-client.js';
import { RelayProcess } from './relay-process.js';
import { withServers } from './servers.js';
import { medians, rate } from './statistics.js';
import { untilSwept } from './swept.js';
import { drainByTheBook } from './textbook-relay.js';

/** How fast relays empty the outbox, beside the raw client and the relay of the books. */
export const benchDrain: Bench = (options) =>
  withServers(options, 'with Kafka', async ({ database, brokers, surroundings }) =>
    withTopic(brokers, async (topic) => {
      const size = options.size ?? (options.smoke ? 500 : 50_000);
      const textbookSize = Math.min(size, options.smoke ? 100 : 1000);
      const type = eventClass(topic);
      const { client, settle, lanes } = options;
      const writer = await openWriter(database, lanes === undefined ? {} : { lanes });
      const sql = writer.get(DataSource);
      const raw = await openRawClient(client, brokers);
      const config = { database, brokers, client, lanes, relay: { settle, ...workersOf(options) } };
      const relays = await Promise.all(Array.from({ length: options.relays }, () => RelayProcess.open(config)));
      const once = async (messages: number, textbookMessages: number) => {
        const rawPerSecond = rate(messages, await sendMany(raw, topic, messages));
        await fill(writer, type, messages);
        const { milliseconds, claimMs, publishMs, settleMs, cores } = await drainBy(relays, messages);
        const perSecond = rate(messages, milliseconds);
        const sweptPerSecond = rate(messages, milliseconds + (await untilSwept(sql)));
        await Promise.all(relays.map((relay) => relay.stop()));
        const textbookPerSecond = rate(textbookMessages, await drainByTheBook(sql, raw, topic, textbookMessages));
        return {
          perSecond,
          rawPerSecond,
          ratioToRaw: perSecond / rawPerSecond,
          textbookPerSecond,
          timesTextbook: perSecond / textbookPerSecond,
          sweptPerSecond,
          sweptRatioToRaw: sweptPerSecond / rawPerSecond,
          claimMs,
          publishMs,
          settleMs,
          relayCores: cores,
        };
      };
      try {
        await once(Math.ceil(size / 10), Math.ceil(textbookSize / 10));
        const runs = [];
        for (let run = 0; run < options.runs; run++) runs.push(await once(size, textbookSize));
        return { ...medians(runs), messages: size, ...surroundings };
      } finally {
        await Promise.all(relays.map((relay) => relay.end()));
        await raw.close();
        await writer.close();
      }
    }),
  );
