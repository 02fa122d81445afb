import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type MessageContext, Outbox, type PublisherFactory, type RawMessage, TransactionRunner, withMessageContext } from 'nestjs-transactional-outbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../consume/until';
import { startApp, type TestApp } from '../setup/app';
import { DATABASES, type DatabaseName } from '../setup/databases';
import { KafkaBroker, type RecordBytes } from './kafka-broker';

/** A message, and the record that it becomes: `docs/wire-format.md` in bytes. Written by hand, not by the library. */
interface Golden {
  readonly name: string;
  readonly message: Omit<RawMessage, 'topic'>;
  readonly context: MessageContext;
  readonly record: {
    /** In hex. */
    readonly key: string | null;
    /** In base64. */
    readonly value: string | null;
    /** Name and value in hex, in the order of the wire. */
    readonly headers: readonly (readonly [name: string, value: string])[];
  };
}

const GOLDEN = JSON.parse(readFileSync(join(import.meta.dirname, 'golden/records.json'), 'utf8')) as Golden[];

/** `created_at` in microseconds since 1970, as each database tells it without a time zone. */
const MICROSECONDS: Record<DatabaseName, string> = {
  mysql: `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at)`,
  mariadb: `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at)`,
  postgres: `ROUND(EXTRACT(EPOCH FROM created_at) * 1000000)`,
  sqlite: `CAST(ROUND((julianday(created_at) - 2440587.5) * 86400000) AS INTEGER) * 1000`,
};

/** What stands on the topic, byte for byte, whatever the database and the client. */
export function describeGoldenRecords(name: string, create: (brokers: string[]) => PublisherFactory): void {
  describe.each(DATABASES)(`golden records through ${name} from %s`, (database) => {
    let onlooker: KafkaBroker;
    let testApp: TestApp;
    const brokers = (process.env['OUTBOX_KAFKA_BROKERS'] ?? '').split(',');
    const records = new Map<string, RecordBytes>();
    const createdAt = new Map<string, number>();

    beforeAll(async () => {
      onlooker = await new KafkaBroker(brokers).connect();
      const topic = await onlooker.createTopic({ partitions: 3 });
      testApp = await startApp(database, { outbox: { publisher: create(brokers), relay: { enabled: true } } });
      const { app, dataSource } = testApp;
      for (const { message, context } of GOLDEN) {
        await withMessageContext(context, () =>
          app.get(TransactionRunner).run(async () => app.get(Outbox).emitRaw({ ...message, topic })),
        );
      }
      await until('all are published', async () => (await onlooker.count(topic)) === GOLDEN.length);
      for (const record of await onlooker.readBytes(topic)) records.set(String(record.headers[0]?.[1]), record);
      const rows = (await dataSource.query(`SELECT message_id, ${MICROSECONDS[database]} AS at FROM outbox_message`)) as { message_id: string; at: string | number }[];
      for (const { message_id: id, at } of rows) createdAt.set(id, Number(at));
    });
    afterAll(async () => {
      await testApp?.close();
      await onlooker?.close();
    });

    it.each(GOLDEN)('$name', ({ message, record: { key, value, headers } }) => {
      const found = records.get(message.messageId ?? '');
      if (found === undefined) throw new Error('it is not on the topic');
      expect(found.key === null ? null : found.key.toString('hex')).toBe(key);
      expect(found.value === null ? null : found.value.toString('base64')).toBe(value);
      expect(found.headers.map(([header, bytes]) => [Buffer.from(header).toString('hex'), bytes.toString('hex')])).toEqual(headers);
      expect(found.timestamp).toBe(Math.floor((createdAt.get(message.messageId ?? '') ?? 0) / 1_000));
    });
  });
}
