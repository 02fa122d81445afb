import { setTimeout as sleep } from 'node:timers/promises';
import { Outbox, TransactionRunner } from 'nestjs-transactional-outbox';
import { DataSource } from 'typeorm';
import { fill, openWriter } from './app.js';
import type { Bench } from './arguments.js';
import { eventClass, makeEvent } from './event.js';
import { withTopic } from './raw-client.js';
import { RelayProcess } from './relay-process.js';
import { withServers } from './servers.js';
import { median, rate, round } from './statistics.js';
import { atSteadyRate } from './steady.js';

/** Part of the drain rate at which events are written. */
const SHARE = 0.7;
/** Events of a transaction: writers that emit one each would not keep up with the relay. */
const EVENTS = 20;
/** Length of the stretches that are compared, in seconds, where there is time. */
const STRETCH = 60;
const POOL_SIZE = 20;

/**
 * Whether claims and memory stay what they are while events come at 70 % of the drain rate, with sweeper and cleaner at
 * work, and, when asked for, a transaction left open elsewhere in the middle. The first stretch against the last.
 */
export const benchSoak: Bench = (options) =>
  withServers(options, 'with Kafka', async ({ database, brokers, surroundings }) =>
    withTopic(brokers, async (topic) => {
      const seconds = options.seconds ?? (options.smoke ? 2 : 600);
      const stretch = Math.min(STRETCH, seconds / 2);
      const sample = options.size ?? (options.smoke ? 200 : 50_000);
      const type = eventClass(topic);
      const app = await openWriter(database, {}, POOL_SIZE);
      const sql = app.get(DataSource);
      const transactions = app.get(TransactionRunner);
      const outbox = app.get(Outbox);
      const relay = await RelayProcess.open({ database, brokers, client: options.client, relay: { settle: options.settle } });
      const end = new AbortController();
      const emit = async (n: number): Promise<void> => {
        const events = Array.from({ length: EVENTS }, (_, index) => makeEvent(type, n * EVENTS + index));
        await transactions.run(async () => outbox.emit(events));
      };
      const purge = async (): Promise<void> => {
        for (; !end.signal.aborted; await sleep(1000)) await relay.purge();
      };
      try {
        await fill(app, type, sample);
        const drainPerSecond = rate(sample, (await relay.drain(sample)).milliseconds);
        const eventsPerSecond = options.rate ?? Math.max(EVENTS, drainPerSecond * SHARE);
        await relay.look();
        const writing = atSteadyRate(eventsPerSecond / EVENTS, () => !end.signal.aborted, emit);
        const purging = purge();
        const opened = options.openTransaction > 0 ? leaveOpen(sql, (seconds * 1000) / 2, options.openTransaction * 1000) : undefined;
        await sleep(stretch * 1000);
        const first = await relay.look();
        await sleep((seconds - 2 * stretch) * 1000);
        await relay.look();
        await sleep(stretch * 1000);
        const last = await relay.look();
        const [{ left }] = (await sql.query('SELECT COUNT(*) AS "left" FROM outbox_pending')) as [{ left: string }];
        end.abort();
        await Promise.all([writing, purging, opened]);
        await relay.stop();
        return {
          ...round({
            claimMsFirst: median(first.claims),
            claimMsLast: median(last.claims),
            claimRatio: median(last.claims) / median(first.claims),
            rssFirst: first.rss,
            rssLast: last.rss,
            rssRatio: last.rss / first.rss,
            drainPerSecond,
            eventsPerSecond,
            pendingLast: Number(left),
          }),
          secondsOfRun: seconds,
          ...surroundings,
        };
      } finally {
        end.abort();
        await relay.end();
        await app.close();
      }
    }),
  );

/** A transaction that has read something and then does nothing, as a forgotten session would. */
async function leaveOpen(sql: DataSource, afterMs: number, forMs: number): Promise<void> {
  await sleep(afterMs);
  await sql.transaction('REPEATABLE READ', async (manager) => {
    await manager.query('SELECT COUNT(*) FROM outbox_lane');
    await sleep(forMs);
  });
}
