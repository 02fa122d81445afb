import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboxModule } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { prometheusMetrics } from 'nestjs-transactional-outbox/prometheus';
import { Registry } from 'prom-client';
import { childConfig, LOCKED_KEYS, OWN_KEYS, type ParentMessage, placeIndex, tell, UNLOCKED_KEYS } from './child-config.js';
import { CommitClock } from './commit-clock.js';
import { FiguresTeller } from './figures-teller.js';
import { LedgerMoved, LedgerNoted, LedgerSeen, POISON_BYTES } from './events.js';
import { type Draft, LedgerService, MeantToFail } from './ledger.service.js';
import { Random, seedOf } from './random.js';

/** A writer: an application whose relay is off, with business transactions of all kinds, several at a time. */
const config = childConfig();
const CONCURRENCY = 4;
const registry = new Registry();
const figures = new FiguresTeller(registry);

@Module({
  imports: [
    TypeOrmModule.forRoot({ ...config.database, subscribers: [CommitClock], poolSize: CONCURRENCY * 3, retryDelay: 500, retryAttempts: 100 }),
    OutboxModule.forRoot({
      publisher: kafkaPublisher({ clientId: config.name, brokers: [`${config.broker.host}:${config.broker.port}`] }),
      order: config.order,
      relay: { enabled: false },
      metrics: prometheusMetrics({ registry }),
    }),
  ],
  providers: [LedgerService],
})
class WriterModule {}

const app = await NestFactory.createApplicationContext(WriterModule, { logger: ['error', 'warn'] });
const ledger = app.get(LedgerService);
let poison = 0;
const life = { stopping: false };
let drafts = 0;

process.on('message', (message: ParentMessage) => {
  if (message.type === 'poison') poison += message.count;
});
process.on('SIGTERM', () => {
  life.stopping = true;
});
process.on('disconnect', () => process.exit(1));

tell({ type: 'ready' });
const loops = Array.from({ length: CONCURRENCY }, (_, index) => write(new Random(seedOf(config.seed, `${config.name}/${index}`))));
await Promise.all(loops);
await figures.count();
await app.close();
process.exit(0);

async function write(random: Random): Promise<void> {
  const pause = (1000 * CONCURRENCY) / config.rate;
  while (!life.stopping) {
    await sleep(pause * random.next() * 2);
    const transaction = drawTransaction(random);
    try {
      await transaction.run();
      await figures.count();
      tell({ type: 'rolledBack', eventIds: transaction.undone.map(({ eventId }) => eventId) });
    } catch (error) {
      if (error instanceof MeantToFail) {
        tell({ type: 'rolledBack', eventIds: transaction.undone.map(({ eventId }) => eventId) });
      } else {
        // The database was away, or a lock was: whether it committed, the ledger knows.
        console.error(`${transaction.kind}: ${error instanceof Error ? error.message : String(error)}`);
        await sleep(100);
      }
    }
  }
}

interface Transaction {
  readonly kind: string;
  run(): Promise<unknown>;
  /** What must not stay when it runs as it is meant to. */
  readonly undone: readonly Draft[];
}

function drawTransaction(random: Random): Transaction {
  if (poison > 0) {
    poison--;
    const drafts = [draft(random, LOCKED_KEYS, POISON_BYTES), draft(random, LOCKED_KEYS)].sort(byKey);
    return { kind: 'poison', run: () => ledger.bookAll(drafts), undone: [] };
  }
  const kind = random.weighted({ move: 4, several: 3, burst: 2, unlocked: 5, byHand: 2, keyless: 1, rollBack: 2, savepoint: 2, apart: 1 });
  switch (kind) {
    case 'move': {
      const one = { ...draft(random, LOCKED_KEYS), type: LedgerMoved };
      return { kind, run: () => ledger.move(one), undone: [] };
    }
    case 'several': {
      const some = several(random, random.int(2, 4));
      return { kind, run: () => ledger.bookAll(some), undone: [] };
    }
    case 'burst': {
      const key = random.pick(LOCKED_KEYS);
      const some = Array.from({ length: random.int(3, 12) }, () => draft(random, [key]));
      return { kind, run: () => ledger.bookAll(some), undone: [] };
    }
    case 'unlocked': {
      const key = random.pick(UNLOCKED_KEYS);
      const some = Array.from({ length: 3 }, () => ({ ...draft(random, [key]), type: LedgerNoted }));
      return { kind, run: () => Promise.all(some.map((one) => ledger.bookUnlocked(one))), undone: [] };
    }
    case 'byHand': {
      const some = several(random, random.int(1, 3));
      return { kind, run: () => ledger.bookByHand(some), undone: [] };
    }
    case 'keyless': {
      const some = [{ ...draft(random, LOCKED_KEYS), key: null, type: LedgerSeen }];
      return { kind, run: () => ledger.bookAll(some), undone: [] };
    }
    case 'rollBack': {
      const some = several(random, random.int(1, 4));
      return { kind, run: () => ledger.bookAndFail(some), undone: some };
    }
    case 'savepoint': {
      const some = several(random, 3);
      const inside = some.slice(1, 2);
      return { kind, run: () => ledger.bookAround(some.slice(0, 1), inside, some.slice(2)), undone: inside };
    }
    case 'apart': {
      const outer = several(random, 2);
      // A key that no other transaction of another writer waits for: the outer transaction waits for the inner one.
      const own = { ...draft(random, OWN_KEYS), key: OWN_KEYS[placeIndex(config.name) % OWN_KEYS.length] ?? null };
      return { kind, run: () => ledger.failAround(outer, own), undone: outer };
    }
  }
}

function several(random: Random, count: number): Draft[] {
  return Array.from({ length: count }, () => draft(random, LOCKED_KEYS)).sort(byKey);
}

function byKey(a: Draft, b: Draft): number {
  return (a.key ?? '').localeCompare(b.key ?? '');
}

function draft(random: Random, keys: readonly string[], bytes = random.int(20, 2500)): Draft {
  const type = bytes >= POISON_BYTES || random.chance(0.5) ? LedgerMoved : LedgerNoted;
  return { eventId: `${config.name}-${++drafts}`, key: random.pick(keys), type, pad: 'x'.repeat(bytes) };
}
