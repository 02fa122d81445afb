/** A relay in a process of its own, for tests that kill or freeze it. It tells what it does, line by line. */
import 'reflect-metadata';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { PooledClaimSessions } from '../../libs/outbox/src/relay/claim-sessions';
import { Relay } from '../../libs/outbox/src/relay/relay';
import { DEFAULT_RELAY_OPTIONS, type RelayOptions } from '../../libs/outbox/src/relay/relay-options';
import { detectDialect } from '../../libs/outbox/src/store/detect-dialect';
import { OutboxStore } from '../../libs/outbox/src/store/outbox-store';
import { tableNames } from '../../libs/outbox/src/store/tables';

export interface ChildSetup {
  readonly dataSource: DataSourceOptions;
  readonly lanes: number;
  readonly relay: RelayOptions;
  /** Milliseconds that the publisher takes for a batch. */
  readonly publishMs: number;
  /** Milliseconds between polls. Default 20. */
  readonly pollMs?: number;
  /** How much the clock of its host is off, in ms. */
  readonly clockOffBy?: number;
  /** Whether each message is refused when this process sees it first. */
  readonly refusesFirst?: boolean;
}

const setup = JSON.parse(process.env.RELAY_CHILD ?? '') as ChildSetup;
const tell = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

if (setup.clockOffBy !== undefined) setClockOff(setup.clockOffBy);
const seen = new Set<string>();

/** As faketime does it for the whole process: all that JavaScript knows of the time of day is Date. */
function setClockOff(by: number): void {
  const { now } = Date;
  globalThis.Date = class extends Date {
    constructor(...args: [] | [number]) {
      super(args.length === 0 ? now() + by : args[0]);
    }
    static override now = (): number => now() + by;
  } as DateConstructor;
}

async function main(): Promise<void> {
  const admin = await new DataSource(setup.dataSource).initialize();
  const dialect = await detectDialect(admin.options, admin, tableNames({}));
  await admin.destroy();
  const store = new OutboxStore(dialect, setup.lanes, 'commit');
  const options = { ...DEFAULT_RELAY_OPTIONS, ...setup.relay };
  const sessions = new PooledClaimSessions(store, setup.dataSource, { workers: options.concurrency, sessionTimeout: options.sessionTimeout });
  const relay = new Relay(
    sessions,
    () => ({
      connect: async () => undefined,
      async publish(records) {
        tell(`publish ${records.length}`);
        await new Promise((resolve) => setTimeout(resolve, setup.publishMs));
        const outcomes = records.map(({ messageId }) => {
          if (!setup.refusesFirst || seen.has(messageId)) return { status: 'acknowledged' as const, partition: 0, offset: null };
          seen.add(messageId);
          return { status: 'refused' as const, failure: { code: 'NO', message: 'not at first' } };
        });
        for (const [index, { status }] of outcomes.entries()) if (status === 'acknowledged') tell(`sent ${records[index]?.messageId}`);
        tell(`published ${records.length}`);
        return outcomes;
      },
      close: async () => tell('close'),
    }),
    store,
    options,
  );
  relay.on('laneLost', ({ messages }) => tell(`lost ${messages}`));
  relay.on('settled', ({ sent }) => tell(`settled ${sent.length}`));
  relay.on('failed', ({ stage }) => tell(`failed ${stage}`));
  relay.start();
  setInterval(() => relay.poll(), setup.pollMs ?? 20);
  tell('ready');
}

void main();
