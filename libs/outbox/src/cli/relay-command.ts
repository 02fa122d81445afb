import { type Command, Option } from 'commander';
import type { PublisherFactory } from '../publish/publisher';
import type { RelayOptions } from '../relay/relay-options';
import { type BrokerOptions, brokersOf, withBrokers } from './brokers';
import type { Source } from './data-source';
import { Failure } from './failure';
import { milliseconds, port, wholeNumber } from './parse';
import type { Output } from './print';
import { runRelay } from './relay-process';

type Client = 'kafkajs' | 'platformatic';

interface Options extends BrokerOptions, RelayOptions {
  readonly client: Client;
  readonly cloudEvents?: string;
  readonly metricsPort?: number;
}

/** Options of the relay that are a number, and what each says. */
const COUNTS = { concurrency: 'workers (default 2)', batchSize: 'messages that a worker takes at once (default 1000)', batchBytes: 'bytes that a worker takes at once (default 4 MiB)', lanesPerClaim: 'lanes that a worker takes at once (default 16)', maxAttempts: 'attempts before a refused message is given up (default 5)' } as const;
const TIMES = {
  pollInterval: 'how often to look without being woken (default 500ms)',
  idlePollInterval: 'the same when there has been nothing for 30 s (default 1s)',
  publishTimeout: 'how long the brokers may take for a batch (default 3s)',
  sessionTimeout: 'how long the database waits for a silent relay (default 10s)',
  retryDelay: 'pause before the second attempt (default 1s)',
  maxRetryDelay: 'longest pause between attempts (default 30s)',
  shutdownTimeout: 'how long the end waits for the running batch (default 10s)',
} as const;

/** The relay as a process of its own. */
export function relayCommand(program: Command, settings: () => Source & { readonly json?: boolean }, output: Output): void {
  const command = withBrokers(program.command('relay').description('publish what waits, until SIGTERM or SIGINT; a second signal ends it at once'))
    .addOption(new Option('--client <name>', 'which client of Kafka publishes').choices(['kafkajs', 'platformatic']).default('kafkajs').env('OUTBOX_KAFKA_CLIENT'))
    .addOption(new Option('--on-exhausted <what>', 'what becomes of a key whose message was given up (default continue)').choices(['continue', 'block']).env('OUTBOX_ON_EXHAUSTED'))
    .addOption(new Option('--settle <how>', 'what becomes of rows of the log that were sent (default mark)').choices(['mark', 'delete']).env('OUTBOX_SETTLE'))
    .addOption(new Option('--cloud-events <source>', 'publish CloudEvents, from this source').env('OUTBOX_CLOUD_EVENTS'))
    .addOption(new Option('--metrics-port <port>', 'serve /metrics, /health/live and /health/ready there').env('OUTBOX_METRICS_PORT').argParser(port));
  for (const [name, what] of Object.entries(COUNTS)) command.addOption(relayOption(name, 'n', what).argParser(wholeNumber));
  for (const [name, what] of Object.entries(TIMES)) command.addOption(relayOption(name, 'time', what).argParser(milliseconds));
  command.action(async ({ client, cloudEvents, metricsPort, ...options }: Options) => {
    const { json, ...source } = settings();
    const brokers = await brokersOf(options, 'outbox-relay');
    const publisher =
      client === 'kafkajs'
        ? await load('kafkajs', async () => (await import('../publish/kafkajs/kafka-publisher.js')).kafkaPublisher(brokers.kafkajs()))
        : await load('@platformatic/kafka', async () => (await import('../publish/platformatic/platformatic-publisher.js')).platformaticPublisher(brokers.platformatic()));
    const relay = Object.fromEntries(Object.entries(options).filter(([name]) => name in COUNTS || name in TIMES || name === 'onExhausted' || name === 'settle'));
    await runRelay({ source, publisher, client, brokers: brokers.names, relay, cloudEvents, metricsPort, json: json === true }, output);
  });
}

/** `--batch-size`, or OUTBOX_BATCH_SIZE. */
function relayOption(name: string, value: string, what: string): Option {
  const flag = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return new Option(`--${flag} <${value}>`, what).env(`OUTBOX_${flag.replaceAll('-', '_').toUpperCase()}`);
}

async function load(name: string, make: () => Promise<PublisherFactory>): Promise<PublisherFactory> {
  try {
    return await make();
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'MODULE_NOT_FOUND')) throw cause;
    throw new Failure(`The relay needs the package ${name}: npm install ${name}.`, 1, { cause });
  }
}
