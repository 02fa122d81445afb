import { setTimeout as sleep } from 'node:timers/promises';
import { Outbox, TransactionRunner } from 'nestjs-transactional-outbox';
import { DataSource } from 'typeorm';
import { fill, openWriter } from './app.js';
import type { Bench } from './arguments.js';
import { withBusyCores } from './busy.js';
import { drainBy } from './drain-by.js';
import { eventClass, makeEvent } from './event.js';
import { LockWaits } from './lock-waits.js';
import { withTopic } from './raw-client.js';
import { RelayProcess } from './relay-process.js';
import { withServers } from './servers.js';
import { medians, percentile } from './statistics.js';
import { atSteadyRate } from './steady.js';
import { untilSwept } from './swept.js';

const POOL_SIZE = 20;

/**
 * What business transactions of two rows and one event notice of a relay that drains and a cleaner that purges, both at
 * full speed; and what they notice of nothing but busy cores.
 */
export const benchInterference: Bench = (options) =>
  withServers(options, 'with Kafka', async ({ database, brokers, surroundings }) =>
    withTopic(brokers, async (topic) => {
      const size = options.size ?? (options.smoke ? 500 : 200_000);
      const perSecond = options.rate ?? 100;
      const type = eventClass(topic);
      // Without commit order: writers then never wait for one another, and each wait that is counted is for somebody else.
      const app = await openWriter(database, { order: 'none' }, POOL_SIZE);
      const sql = app.get(DataSource);
      const relay = await RelayProcess.open({ database, brokers, client: options.client, relay: { settle: 'mark' } });
      await sql.query('CREATE TABLE business (id INT PRIMARY KEY, text VARCHAR(300))');
      const transactions = app.get(TransactionRunner);
      const outbox = app.get(Outbox);
      let next = 0;
      /** The 99th percentile of the business transactions while something goes on, and how often they waited for a lock. */
      const during = async (work: () => Promise<unknown>): Promise<{ p99: number; seconds: number; waits: number }> => {
        const took: number[] = [];
        const waits = await LockWaits.begin(sql, options.db);
        const begun = performance.now();
        let over = false;
        const working = work().finally(() => (over = true));
        const insert = async (): Promise<void> => {
          const id = next;
          next += 2;
          const start = performance.now();
          await transactions.run(async () => {
            await sql.query(`INSERT INTO business (id, text) VALUES (${id}, 'some text')`);
            await sql.query(`INSERT INTO business (id, text) VALUES (${id + 1}, 'some text')`);
            outbox.emit(makeEvent(type, id));
          });
          took.push(performance.now() - start);
        };
        await atSteadyRate(perSecond, () => !over, insert);
        await working;
        return { p99: percentile(took, 99), seconds: (performance.now() - begun) / 1000, waits: await waits.end() };
      };
      const once = async (messages: number) => {
        await fill(app, type, messages);
        await drainBy([relay], messages);
        await untilSwept(sql);
        await relay.stop();
        await fill(app, type, messages);
        const loaded = await during(async () => {
          await Promise.all([drainBy([relay], messages), relay.purge()]);
          await relay.stop();
        });
        const quiet = (): Promise<unknown> => sleep(loaded.seconds * 1000);
        const alone = await during(quiet);
        const busy = await withBusyCores(() => during(quiet));
        return {
          p99Ratio: loaded.p99 / alone.p99,
          busyRatio: busy.p99 / alone.p99,
          p99: loaded.p99,
          p99Alone: alone.p99,
          p99Busy: busy.p99,
          lockWaits: loaded.waits,
          lockWaitsAlone: alone.waits,
          secondsOfRun: loaded.seconds,
        };
      };
      try {
        if (!options.smoke) await once(Math.ceil(size / 20));
        const runs = [];
        for (let run = 0; run < options.runs; run++) runs.push(await once(size));
        return { ...medians(runs), messages: size, insertsPerSecond: perSecond, ...surroundings };
      } finally {
        await relay.end();
        await app.close();
      }
    }),
  );
