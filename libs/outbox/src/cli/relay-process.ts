import { Logger } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import { resolveOptions } from '../options';
import { OutboxCore } from '../outbox-core';
import type { PublisherFactory } from '../publish/publisher';
import type { Relay } from '../relay/relay';
import type { RelayOptions } from '../relay/relay-options';
import { RelaySchedule } from '../relay/relay-schedule';
import { detectDialect } from '../store/detect-dialect';
import { DEFAULT_LANES, tableNames } from '../store/tables';
import { DEFAULT_DATA_SOURCE } from '../transaction/tokens';
import { EventTypes } from '../write/event-types';
import { askedToStop } from './asked-to-stop';
import { laneCountOf, openDataSource, type Source, tablesOf } from './data-source';
import { Failure } from './failure';
import type { Output } from './print';
import { processLog } from './process-log';
import { StatusServer } from './status-server';

export interface RelaySetup {
  readonly source: Source;
  readonly publisher: PublisherFactory;
  readonly client: string;
  /** For people. */
  readonly brokers: string;
  readonly relay: RelayOptions;
  readonly cloudEvents: string | undefined;
  readonly metricsPort: number | undefined;
  readonly json: boolean;
}

/**
 * Relays until it is asked to stop; then the running batches are settled, and nothing is left open. It cleans nothing:
 * how long rows are kept is for the app to say.
 */
export async function runRelay({ source, publisher, client, brokers, relay, cloudEvents, metricsPort, json }: RelaySetup, output: Output): Promise<void> {
  Logger.overrideLogger(processLog((line) => output.err(line), json));
  const logger = new Logger('OutboxRelay');
  const stop = askedToStop();
  const ends: (() => Promise<unknown>)[] = [() => Promise.resolve(stop.ignore())];
  try {
    const names = tableNames({ tables: tablesOf(source) });
    const status = metricsPort === undefined ? undefined : await StatusServer.create();
    const dataSource = await openDataSource(source);
    ends.unshift(() => dataSource.destroy());
    if (dataSource.options.type === 'better-sqlite3') throw new Failure('A database of SQLite belongs to one process: relay in the app, with relay.enabled.', 2);
    const { tables } = await detectDialect(dataSource.options, dataSource, names);
    const options = resolveOptions({
      publisher,
      tables: names,
      lanes: (await laneCountOf(dataSource, tables.lane)) ?? DEFAULT_LANES,
      relay,
      retention: false,
      ...(cloudEvents === undefined ? {} : { cloudEvents: { source: cloudEvents } }),
      ...(status ? { metrics: status.metrics } : {}),
    });
    const core = await OutboxCore.create(options, dataSource, new EventTypes(), DEFAULT_DATA_SOURCE);
    ends.unshift(() => core.onApplicationShutdown());
    if (status && metricsPort !== undefined) {
      logger.log(`Metrics and health on port ${await status.listen(metricsPort, core)}.`);
      ends.unshift(() => status.close());
    }
    tellOf(core.relay, logger);
    const schedule = new RelaySchedule(core.relay, new SchedulerRegistry(), DEFAULT_DATA_SOURCE);
    ends.unshift(() => schedule.beforeApplicationShutdown());
    await schedule.onApplicationBootstrap();
    logger.log(`Relay started: ${dataSource.options.type}, ${options.lanes} lanes, ${options.relay.concurrency} workers, publishing to ${brokers} with ${client}.`);
    const signal = await stop.asked;
    logger.log(`${signal}: the running batches end, nothing new is begun.`);
    status?.stopping();
    await endAll(ends);
    logger.log(`Relay stopped, ${core.relay.status().published} messages published.`);
  } finally {
    await endAll(ends);
  }
}

/** In their order, each once. */
async function endAll(ends: (() => Promise<unknown>)[]): Promise<void> {
  for (let end = ends.shift(); end; end = ends.shift()) await end();
}

/** What the relay does not log by itself, since an app may have its own word for it. */
function tellOf(relay: Relay, logger: Logger): void {
  relay.on('parked', ({ message, error, blocks }) => {
    logger.error(`Given up: message ${message.messageId} (id ${message.id}) for ${message.topic}: ${error}${blocks ? '; its key waits' : ''}.`);
  });
  relay.on('laneLost', ({ messages, cause }) => logger.warn(`Lanes were lost with ${messages} messages, which are sent by whoever has them now: ${cause.message}`));
}
