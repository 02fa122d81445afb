import { setTimeout as sleep } from 'node:timers/promises';
import { Outbox, TransactionRunner } from 'nestjs-transactional-outbox';
import { DataSource } from 'typeorm';
import { openWriter } from './app.js';
import type { Bench } from './arguments.js';
import { drainBy } from './drain-by.js';
import { eventClass, makeEvent } from './event.js';
import { withTopic } from './raw-client.js';
import { RelayProcess } from './relay-process.js';
import { withServers } from './servers.js';
import { median, rate, round } from './statistics.js';
import { atSteadyRate } from './steady.js';

/** Part of the rate that relay and writers reach together, at which events are written. */
const SHARE = 0.7;
/** Events of a transaction: writers that emit one each would not keep up with the relay. */
const EVENTS = 20;
/** Length of the stretches that are compared, and of the warm-up before them, in seconds, where there is time. */
const STRETCH = 60;
/** Transactions at once, at most. */
const WRITERS = 8;
/** What is sent leaves the log after so many milliseconds, at a pass of the cleaner that comes as often. */
const KEPT = 10_000;

/**
 * Whether claims and memory stay what they are while events come at 70 % of the rate that writers and relay reach together
 * on this machine, with sweeper and cleaner at work, and, when asked for, a transaction left open elsewhere in the middle.
 * The first stretch after the warm-up against the last.
 */
export const benchSoak: Bench = (options) =>
  withServers(options, 'with Kafka', async ({ database, brokers, surroundings }) =>
    withTopic(brokers, async (topic) => {
      const seconds = options.seconds ?? (options.smoke ? 2 : 600);
      const stretch = Math.min(STRETCH, seconds / 2);
      const sample = options.size ?? (options.smoke ? 200 : 50_000);
      const type = eventClass(topic);
      const app = await openWriter(database, {}, WRITERS + 2);
      const sql = app.get(DataSource);
      const transactions = app.get(TransactionRunner);
      const outbox = app.get(Outbox);
      const relay = await RelayProcess.open({
        database,
        brokers,
        client: options.client,
        relay: { settle: options.settle },
        retention: { sent: KEPT, interval: KEPT },
      });
      let written = 0;
      const emit = async (): Promise<void> => {
        const events = Array.from({ length: EVENTS }, () => makeEvent(type, written++));
        await transactions.run(async () => outbox.emit(events));
      };
      const rowsOf = async (table: string): Promise<number> => {
        const [{ rows }] = (await sql.query(`SELECT COUNT(*) AS "rows" FROM ${table}`)) as [{ rows: string }];
        return Number(rows);
      };
      let over = false;
      try {
        const draining = drainBy([relay], sample);
        await atSteadyRate(Number.POSITIVE_INFINITY, () => written < sample, emit, WRITERS);
        const carriedPerSecond = rate(sample, (await draining).milliseconds);
        const eventsPerSecond = options.rate ?? Math.max(EVENTS, carriedPerSecond * SHARE);
        const writing = atSteadyRate(eventsPerSecond / EVENTS, () => !over, emit, WRITERS);
        const during = async (milliseconds: number) => {
          await relay.look();
          const before = written;
          await sleep(milliseconds);
          const { claims, rss, heap } = await relay.look();
          return { claimMs: median(claims), rss, heap, writtenPerSecond: rate(written - before, milliseconds) };
        };
        const stretches = Math.max(2, Math.floor(seconds / stretch));
        await sleep(stretch * 1000);
        const opened = leaveOpen(sql, (stretches * stretch * 1000) / 2, options.openTransaction * 1000);
        const seen = [];
        for (let n = 0; n < stretches; n++) seen.push(await during(stretch * 1000));
        await opened;
        const [first, last] = [seen[0], seen.at(-1)];
        if (!first || !last) throw new Error('There is no first stretch.');
        const [pendingLast, logLast] = [await rowsOf('outbox_pending'), await rowsOf('outbox_message')];
        over = true;
        await writing;
        await relay.stop();
        return {
          ...round({
            claimMsFirst: first.claimMs,
            claimMsLast: last.claimMs,
            claimRatio: last.claimMs / first.claimMs,
            rssFirst: first.rss,
            rssLast: last.rss,
            rssRatio: last.rss / first.rss,
            heapFirst: first.heap,
            heapLast: last.heap,
            carriedPerSecond,
            eventsPerSecond,
            writtenPerSecondFirst: first.writtenPerSecond,
            writtenPerSecondLast: last.writtenPerSecond,
            pendingLast,
            logLast,
          }),
          claimMs: seen.map(({ claimMs }) => Math.round(claimMs * 10) / 10),
          secondsOfRun: stretches * stretch,
          secondsOpen: options.openTransaction,
          ...surroundings,
        };
      } finally {
        over = true;
        await relay.end();
        await app.close();
      }
    }),
  );

/** A transaction that has read something and then does nothing, as a forgotten session would. */
async function leaveOpen(sql: DataSource, afterMs: number, forMs: number): Promise<void> {
  if (forMs === 0) return;
  await sleep(Math.max(0, afterMs - forMs / 2));
  await sql.transaction('REPEATABLE READ', async (manager) => {
    await manager.query('SELECT COUNT(*) FROM outbox_lane');
    await sleep(forMs);
  });
}
