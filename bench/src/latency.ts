import { Outbox, TransactionRunner } from 'nestjs-transactional-outbox';
import { DataSource } from 'typeorm';
import { openWriter, publisherOf } from './app.js';
import { type Bench, workersOf } from './arguments.js';
import { Arrivals } from './arrivals.js';
import { now } from './clock.js';
import { eventClass, makeEvent } from './event.js';
import { openRawClient, rawRecord, withTopic } from './raw-client.js';
import { withServers } from './servers.js';
import { medians, percentile } from './statistics.js';
import { atSteadyRate } from './steady.js';

const WARM_UP_SECONDS = 2;

/** From the return of COMMIT to the consumer's handler, with the relay in the app; beside what the raw client takes. */
export const benchLatency: Bench = (options) =>
  withServers(options, 'with Kafka', async ({ database, brokers, surroundings }) =>
    withTopic(brokers, async (topic) => {
      const perSecond = options.rate ?? 100;
      const seconds = options.seconds ?? (options.smoke ? 1 : 30);
      const type = eventClass(topic);
      const app = await openWriter(database, { publisher: publisherOf(options.client, brokers), relay: { settle: options.settle, ...workersOf(options) } });
      const sql = app.get(DataSource);
      const transactions = app.get(TransactionRunner);
      const outbox = app.get(Outbox);
      await sql.query('CREATE TABLE business (id INT PRIMARY KEY)');
      const raw = await openRawClient(options.client, brokers);
      const arrivals = await Arrivals.open(brokers, topic);
      let next = 0;

      const produce = async (departures: Map<number, number>): Promise<void> => {
        const n = next++;
        departures.set(n, now());
        await raw.send(topic, [rawRecord(n)]);
      };
      const commit = async (departures: Map<number, number>): Promise<void> => {
        const n = next++;
        await transactions.run(async () => {
          await sql.query(`INSERT INTO business (id) VALUES (${n})`);
          outbox.emit(makeEvent(type, n));
        });
        departures.set(n, now());
      };
      const measure = async (work: typeof commit, forSeconds: number): Promise<number[]> => {
        const departures = new Map<number, number>();
        await atSteadyRate(perSecond, (n) => n < perSecond * forSeconds, () => work(departures));
        return arrivals.since(departures);
      };
      try {
        if (!options.smoke) for (const work of [produce, commit]) await measure(work, WARM_UP_SECONDS);
        const runs = [];
        for (let run = 0; run < options.runs; run++) {
          const floor = await measure(produce, seconds);
          const own = await measure(commit, seconds);
          const figures = { p50: percentile(own, 50), p99: percentile(own, 99), floorP50: percentile(floor, 50), floorP99: percentile(floor, 99) };
          runs.push({ ...figures, p50ToFloor: figures.p50 / figures.floorP50, p99ToFloor: figures.p99 / figures.floorP99 });
        }
        return { ...medians(runs), eventsPerSecond: perSecond, secondsOfRun: seconds, ...surroundings };
      } finally {
        arrivals.close();
        await raw.close();
        await app.close();
      }
    }),
  );
