import type { Type } from '@nestjs/common';
import type { CustomStrategy, KafkaOptions } from '@nestjs/microservices';
import { ConsumerEvents, type ConsumerEvent } from 'nestjs-transactional-outbox';
import { type TestApp, type TestAppOptions, startApp } from '../setup/app';
import type { DatabaseName } from '../setup/databases';
import { Note } from '../setup/notes';
import type { KafkaSide } from './kafka-side';
import { until } from './until';

export interface ConsumerApp extends TestApp {
  readonly events: ConsumerEvents;
  /** Everything that has happened since the start. */
  readonly seen: readonly ConsumerEvent[];
  /** The messages in the log, as far as a test looks at them. */
  messages(topic: string): Promise<LogRow[]>;
  count(table: string, where?: string): Promise<number>;
  /** Waits until so many events of the kind have been seen for the consumer. */
  reached(consumer: string, kind: ConsumerEvent['kind'], count?: number): Promise<void>;
}

export interface LogRow {
  readonly message_id: string;
  readonly message_key: string | null;
  readonly event_type: string;
  readonly payload: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly correlation_id: string | null;
  readonly causation_id: string | null;
  readonly traceparent: string | null;
  readonly tenant_id: string | null;
}

export interface ConsumerAppOptions extends TestAppOptions {
  readonly controllers: Type<object>[];
  readonly servers: (KafkaOptions | CustomStrategy)[];
}

/** An app on a fresh database that reads from Kafka. */
export async function startConsumers(database: DatabaseName, options: ConsumerAppOptions): Promise<ConsumerApp> {
  const started = await startApp(database, { ...options, entities: [Note, ...(options.entities ?? [])] });
  const { app, dataSource } = started;
  const events = app.get(ConsumerEvents);
  const seen: ConsumerEvent[] = [];
  events.subscribe((event) => seen.push(event));
  for (const server of options.servers) app.connectMicroservice(server);
  await app.startAllMicroservices();
  return {
    ...started,
    events,
    seen,
    async messages(topic) {
      const rows = (await dataSource.query(
        `SELECT * FROM outbox_message WHERE topic = '${topic}' ORDER BY id`,
      )) as (Omit<LogRow, 'headers'> & { headers: string | null })[];
      return rows.map((row) => ({ ...row, headers: JSON.parse(row.headers ?? '{}') as Record<string, string> }));
    },
    async count(table, where = '1 = 1') {
      const rows = (await dataSource.query(`SELECT COUNT(*) AS n FROM ${table} WHERE ${where}`)) as { n: string | number }[];
      return Number(rows[0]?.n);
    },
    reached(consumer, kind, count = 1) {
      return until(`${count} × ${kind} at ${consumer}`, () => events.counts(consumer)[kind] >= count);
    },
  };
}

/** Waits until the group has committed all of the topic. */
export function drained(kafka: KafkaSide, groupId: string, topic: string): Promise<void> {
  return until(`${groupId} is through ${topic}`, () => kafka.isDone(groupId, topic));
}
