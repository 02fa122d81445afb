import type { INestApplicationContext } from '@nestjs/common';
import { type Order, Outbox, TransactionRunner } from 'nestjs-transactional-outbox';
import { DataSource } from 'typeorm';
import { openWriter } from './app.js';
import type { Bench, BenchOptions } from './arguments.js';
import { bareInsert } from './bare-insert.js';
import { eventClass, makeEvent } from './event.js';
import { withServers } from './servers.js';
import { median, rate, round } from './statistics.js';

const POOL_SIZE = 64;
const CONCURRENCY = [1, 16, 64] as const;

/** A transaction of two business rows, with or without an event. */
type Transaction = () => Promise<void>;
type Kind = 'plain' | 'bare' | Order;

/**
 * What an event adds to a transaction of two inserts: in ms when there is one writer, and as the ratio of the rates when
 * there are many. `strict…` is with the lock that keeps commit order, `bare…` the same by SQL alone.
 */
export const benchEnqueue: Bench = (options) =>
  withServers(options, 'without Kafka', async ({ database, surroundings }) => {
    const apps = {
      none: await openWriter(database, { order: 'none' }, POOL_SIZE),
      commit: await openWriter(database, { order: 'commit' }, POOL_SIZE),
    };
    try {
      const dataSource = apps.none.get(DataSource);
      await dataSource.query('CREATE TABLE business (id INT PRIMARY KEY, text VARCHAR(300))');
      const kinds: Record<Kind, Transaction> = {
        plain: transactionOf(apps.none, () => undefined),
        bare: transactionOf(apps.none, bareInsert(dataSource, options.db)),
        none: transactionOf(apps.none, emitting(apps.none)),
        commit: transactionOf(apps.commit, emitting(apps.commit)),
      };
      const rates = await measure(kinds, options);
      const msAt1 = (kind: Kind): number => 1000 / rates[kind][0];
      const figures = round({
        plainMsAt1: msAt1('plain'),
        addedMsAt1: msAt1('none') - msAt1('plain'),
        ratioAt16: rates.plain[1] / rates.none[1],
        ratioAt64: rates.plain[2] / rates.none[2],
        strictAddedMsAt1: msAt1('commit') - msAt1('plain'),
        strictRatioAt16: rates.plain[1] / rates.commit[1],
        strictRatioAt64: rates.plain[2] / rates.commit[2],
        bareAddedMsAt1: msAt1('bare') - msAt1('plain'),
        bareRatioAt16: rates.plain[1] / rates.bare[1],
        bareRatioAt64: rates.plain[2] / rates.bare[2],
      });
      return { ...figures, ...surroundings };
    } finally {
      for (const app of Object.values(apps)) await app.close();
    }
  });

type Rates = [number, number, number];

/** Transactions per second at each concurrency: the median of runs in which the kinds take turns. */
async function measure(kinds: Record<Kind, Transaction>, { smoke, runs, size = 60 }: BenchOptions): Promise<Record<Kind, Rates>> {
  const rates: Record<Kind, Rates> = { plain: [0, 0, 0], bare: [0, 0, 0], none: [0, 0, 0], commit: [0, 0, 0] };
  for (const [index, concurrency] of CONCURRENCY.entries()) {
    const count = smoke ? concurrency : 5 * size + size * concurrency;
    const seen: Record<Kind, number[]> = { plain: [], bare: [], none: [], commit: [] };
    for (let run = 0; run <= runs; run++) {
      for (const kind of Object.keys(kinds) as Kind[]) {
        const perSecond = await rateOf(kinds[kind], concurrency, count);
        // The first run warms up.
        if (run > 0) seen[kind].push(perSecond);
      }
    }
    for (const kind of Object.keys(kinds) as Kind[]) rates[kind][index] = median(seen[kind]);
  }
  return rates;
}

async function rateOf(transaction: Transaction, concurrency: number, count: number): Promise<number> {
  let left = count;
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (left-- > 0) await transaction();
    }),
  );
  return rate(count, performance.now() - begun);
}

const Written = eventClass('bench');
let nextId = 1;

function emitting(app: INestApplicationContext): (n: number) => void {
  const outbox = app.get(Outbox);
  return (n) => outbox.emit(makeEvent(Written, n));
}

function transactionOf(app: INestApplicationContext, more: (n: number) => Promise<void> | void): Transaction {
  const dataSource = app.get(DataSource);
  const transactions = app.get(TransactionRunner);
  const insert = `INSERT INTO business (id, text) VALUES (${dataSource.options.type === 'postgres' ? '$1, $2' : '?, ?'})`;
  const text = 'x'.repeat(250);
  return () =>
    transactions.run(async () => {
      const id = nextId;
      nextId += 2;
      await dataSource.query(insert, [id, text]);
      await dataSource.query(insert, [id + 1, text]);
      await more(id);
    });
}
