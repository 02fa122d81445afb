import type { KafkaOptions } from '@nestjs/microservices';
import { logLevel } from 'kafkajs';
import { DataSource, type DataSourceOptions } from 'typeorm';
import type { Bench } from './arguments.js';
import { CONTROLLERS, KINDS, type Kind, openConsumer, Tally } from './consumer-app.js';
import { KEYS } from './event.js';
import { openRawClient, sendMany, withTopic } from './raw-client.js';
import { withServers } from './servers.js';
import { medians, rate } from './statistics.js';

const PARTITIONS_AT_ONCE = 8;

/**
 * How fast messages are handled by a handler that updates one row: with `@IdempotentConsumer`, in batches, and in a
 * transaction without either, which is the reference.
 */
export const benchConsume: Bench = (options) =>
  withServers(options, 'with Kafka', async ({ database, brokers, surroundings }) => {
    const size = options.size ?? (options.smoke ? 200 : 20_000);
    const raw = await openRawClient(options.client, brokers);
    const once = (messages: number) =>
      withTopic(brokers, async (topic) => {
        await sendMany(raw, topic, messages);
        const rates = { plain: 0, single: 0, batch: 0 };
        for (const kind of KINDS) rates[kind] = rate(messages, await consume(kind, { database, brokers, topic, messages }));
        return {
          ratio: rates.single / rates.plain,
          plainPerSecond: rates.plain,
          singlePerSecond: rates.single,
          batchPerSecond: rates.batch,
          batchToSingle: rates.batch / rates.single,
        };
      });
    try {
      if (!options.smoke) await once(Math.ceil(size / 10));
      const runs = [];
      for (let run = 0; run < options.runs; run++) runs.push(await once(size));
      return { ...medians(runs), messages: size, ...surroundings };
    } finally {
      await raw.close();
    }
  });

interface Work {
  readonly database: DataSourceOptions;
  readonly brokers: readonly string[];
  readonly topic: string;
  readonly messages: number;
}

/** Milliseconds from the first call of the handler to the last message. */
async function consume(kind: Kind, { database, brokers, topic, messages }: Work): Promise<number> {
  const tally = new Tally(messages);
  const kafka: NonNullable<KafkaOptions['options']> = {
    client: { clientId: `bench-${kind}`, brokers: [...brokers], logLevel: logLevel.ERROR },
    consumer: { groupId: `${topic}-${kind}` },
    subscribe: { fromBeginning: true },
    run: { partitionsConsumedConcurrently: PARTITIONS_AT_ONCE },
  };
  const app = await openConsumer(database, CONTROLLERS[kind](topic, tally), kafka);
  try {
    const sql = app.get(DataSource);
    await sql.query('CREATE TABLE IF NOT EXISTS counter (id INT PRIMARY KEY, total INT NOT NULL)');
    await sql.query('DELETE FROM counter');
    const rows = Array.from({ length: KEYS }, (_, id) => `(${id}, 0)`);
    await sql.query(`INSERT INTO counter (id, total) VALUES ${rows.join(', ')}`);
    await app.listen();
    return await tally.done();
  } finally {
    await app.close();
  }
}
