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
}

const setup = JSON.parse(process.env.RELAY_CHILD ?? '') as ChildSetup;
const tell = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

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
        tell(`published ${records.length}`);
        return records.map(() => ({ status: 'acknowledged' as const, partition: 0, offset: null }));
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
