import { type INestApplicationContext, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { type Order, Outbox, OutboxEvent, OutboxModule, TransactionRunner } from 'nestjs-transactional-outbox';
import { InMemoryBroker } from 'nestjs-transactional-outbox/in-memory';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { type ServerName, withDatabase } from './server.js';

const ROUNDS = 3;
const CONCURRENCY = [1, 16, 64] as const;

@OutboxEvent({ type: 'bench.written', topic: 'bench', key: (event: Written) => event.id })
class Written {
  id!: number;
  text!: string;
}

/** A transaction of two business rows, with or without an event. */
type Transaction = () => Promise<void>;
type Kind = 'plain' | Order;

/**
 * What an event adds to a transaction of two inserts: in ms when there is one writer, and as the ratio of the rates when
 * there are many. `strict…` is with the lock that keeps commit order.
 */
export function benchEnqueue(server: ServerName, smoke: boolean): Promise<Record<string, number>> {
  return withDatabase(server, async (options) => {
    const apps = { none: await openApp(options, 'none'), commit: await openApp(options, 'commit') };
    try {
      const dataSource = apps.none.get(DataSource);
      await dataSource.query('CREATE TABLE business (id INT PRIMARY KEY, text VARCHAR(300))');
      const kinds: Record<Kind, Transaction> = {
        plain: transactionOf(apps.none, false),
        none: transactionOf(apps.none, true),
        commit: transactionOf(apps.commit, true),
      };
      const rates = await measure(kinds, smoke);
      const msAt1 = (kind: Kind): number => 1000 / rates[kind][0];
      return round({
        plainMsAt1: msAt1('plain'),
        addedMsAt1: msAt1('none') - msAt1('plain'),
        ratioAt16: rates.plain[1] / rates.none[1],
        ratioAt64: rates.plain[2] / rates.none[2],
        strictAddedMsAt1: msAt1('commit') - msAt1('plain'),
        strictRatioAt16: rates.plain[1] / rates.commit[1],
        strictRatioAt64: rates.plain[2] / rates.commit[2],
      });
    } finally {
      for (const app of Object.values(apps)) await app.close();
    }
  });
}

type Rates = [number, number, number];

/** Transactions per second at each concurrency: the median of rounds in which the kinds take turns. */
async function measure(kinds: Record<Kind, Transaction>, smoke: boolean): Promise<Record<Kind, Rates>> {
  const rates: Record<Kind, Rates> = { plain: [0, 0, 0], none: [0, 0, 0], commit: [0, 0, 0] };
  for (const [index, concurrency] of CONCURRENCY.entries()) {
    const count = smoke ? concurrency : 300 + 60 * concurrency;
    const seen: Record<Kind, number[]> = { plain: [], none: [], commit: [] };
    for (let roundOf = smoke ? 1 : 0; roundOf <= (smoke ? 1 : ROUNDS); roundOf++) {
      for (const kind of Object.keys(kinds) as Kind[]) {
        const rate = await rateOf(kinds[kind], concurrency, count);
        // The first round warms up.
        if (roundOf > 0) seen[kind].push(rate);
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
  return (count * 1000) / (performance.now() - begun);
}

let nextId = 1;

function transactionOf(app: INestApplicationContext, withEvent: boolean): Transaction {
  const dataSource = app.get(DataSource);
  const transactions = app.get(TransactionRunner);
  const outbox = app.get(Outbox);
  const insert = `INSERT INTO business (id, text) VALUES (${dataSource.options.type === 'postgres' ? '$1, $2' : '?, ?'})`;
  const text = 'x'.repeat(250);
  return () =>
    transactions.run(async () => {
      const id = nextId;
      nextId += 2;
      await dataSource.query(insert, [id, text]);
      await dataSource.query(insert, [id + 1, text]);
      if (withEvent) outbox.emit(Object.assign(new Written(), { id, text }));
    });
}

async function openApp(options: DataSourceOptions, order: Order): Promise<INestApplicationContext> {
  @Module({
    imports: [
      TypeOrmModule.forRoot({ ...options, poolSize: 64 } as DataSourceOptions),
      OutboxModule.forRoot({
        publisher: new InMemoryBroker().publisher(),
        createTables: true,
        order,
        relay: { enabled: false },
      }),
    ],
  })
  class BenchModule {}
  return NestFactory.createApplicationContext(BenchModule, { logger: false });
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function round(figures: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, Math.round(value * 1000) / 1000]));
}
