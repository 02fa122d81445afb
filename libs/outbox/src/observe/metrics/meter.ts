import type { ConsumerEvents } from '../../consume/consumer-events';
import type { OutboxMessage } from '../../event/message';
import type { Relay } from '../../relay/relay';
import type { Sql } from '../../store/dialect';
import type { OutboxStore } from '../../store/outbox-store';
import { DatabaseClock } from './database-clock';
import { INSTRUMENTS } from './instruments';
import type { OutboxMetrics, Reading } from './outbox-metrics';
import { type ObservedProcess, processReadings } from './process-readings';
import { Recorder } from './recorder';
import { TableReadings } from './table-readings';

export interface MeterOptions extends ObservedProcess {
  readonly metrics: OutboxMetrics;
  /** Its name, which tells its series from those of other data sources. */
  readonly dataSource: string;
  readonly maxMessageBytes: number;
  readonly sql: Sql;
  readonly store: OutboxStore;
  readonly relay: Relay;
  readonly consumers: ConsumerEvents;
}

/** Measures one data source's outbox. */
export class Meter {
  private readonly recorder: Recorder;
  private readonly clock: DatabaseClock;
  private readonly tables: TableReadings;
  private readonly stopObserving: () => void;

  constructor(private readonly options: MeterOptions) {
    const { sql, store, metrics, relay, consumers } = options;
    this.clock = new DatabaseClock(store.dialect);
    this.tables = new TableReadings(sql, store, this.clock);
    this.recorder = new Recorder({ ...options, clock: this.clock });
    this.recorder.listen(relay, consumers);
    this.stopObserving = metrics.observe(() => this.read());
  }

  /** Asks the database for its time, before the first message is delivered. */
  start(): Promise<void> {
    return this.clock.ask(this.options.sql);
  }

  /** Called with the messages of a transaction that has committed. */
  emitted(messages: readonly OutboxMessage[]): void {
    this.recorder.emitted(messages);
  }

  stop(): void {
    this.stopObserving();
  }

  private async read(): Promise<readonly Reading[]> {
    const tables = await this.tables.read();
    const up = { instrument: INSTRUMENTS.databaseUp, labels: {}, value: Number(tables !== undefined) };
    return [up, ...(tables ?? []), ...processReadings(this.options)].map((reading) => ({
      ...reading,
      labels: { data_source: this.options.dataSource, ...reading.labels },
    }));
  }
}
