import { copyFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Order, RelayOptions } from 'nestjs-transactional-outbox';
import { type OwnServer, startOwn } from '../../services/index.mjs';
import { readAll, settle } from './arrival.js';
import { BROKER_SETTINGS, ChaosBroker } from './broker.js';
import { ChildPlace, type ChildRole } from './child.js';
import type { ChildConfig, ChildMessage, DatabaseName } from './child-config.js';
import { ChaosDatabase } from './database.js';
import { FiguresCollector } from './figures-collector.js';
import { Faults, type Ground } from './faults.js';
import type { CommitInterval, FaultRecord, History } from './history.js';
import type { PlannedFault } from './plan.js';
import { TcpProxy } from './tcp-proxy.js';

export interface RunOptions {
  readonly database: DatabaseName;
  readonly seed: number;
  readonly seconds: number;
  readonly faults: readonly PlannedFault[];
  readonly writers: number;
  readonly relays: number;
  readonly consumers: number;
  /** Transactions per second, all writers together. */
  readonly rate: number;
  readonly order: Order;
  readonly settle: NonNullable<RelayOptions['settle']>;
  readonly logFolder: string;
  readonly say: (line: string) => void;
}

export interface RunResult {
  readonly history: History;
  /** Processes that ended although nobody ended them. */
  readonly crashes: readonly string[];
}

/** Deadlocks are no broken promise of P1 to P5, and yet to be seen: the server writes them into its log. */
const DATABASE_SETTINGS: Record<DatabaseName, Record<string, string>> = {
  mysql: { 'innodb-print-all-deadlocks': 'ON' },
  mariadb: { 'innodb-print-all-deadlocks': 'ON' },
  postgres: {},
};

/** Builds the ground, lets writers, relays and consumers run under the faults, heals everything, and reads what came of it. */
export async function runChaos(options: RunOptions): Promise<RunResult> {
  const { say } = options;
  mkdirSync(options.logFolder, { recursive: true });
  const undo: (() => Promise<unknown>)[] = [];
  try {
    say(`starting ${options.database} and Kafka`);
    const [databaseServer, brokerServer] = await Promise.all([
      startOwn(options.database, { settings: DATABASE_SETTINGS[options.database] }).then((server) => {
        undo.push(() => server.remove());
        undo.push(async () => keepLog(server, options.logFolder));
        return server;
      }),
      startOwn('kafka', { settings: BROKER_SETTINGS }).then((server) => {
        undo.push(() => server.remove());
        return server;
      }),
    ]);
    const database = new ChaosDatabase(databaseServer, options.database);
    const broker = new ChaosBroker(brokerServer.info.url);
    undo.push(() => broker.close());
    await Promise.all([database.prepare(), broker.prepare()]);

    const evidence = new Evidence();
    const proxies = async (port: number): Promise<TcpProxy[]> =>
      Promise.all(
        Array.from({ length: options.relays }, async () => {
          const proxy = await TcpProxy.listen({ host: '127.0.0.1', port });
          undo.push(() => proxy.close());
          return proxy;
        }),
      );
    const databaseProxies = await proxies(databaseServer.info.port);
    const brokerProxies = await proxies(brokerServer.info.port);
    const places = (role: ChildRole, count: number): ChildPlace[] =>
      Array.from({ length: count }, (_, index) => {
        const relay = role === 'relay';
        const brokerProxy = relay ? brokerProxies[index] : undefined;
        const config: Omit<ChildConfig, 'name'> = {
          seed: options.seed,
          database: database.address(relay ? databaseProxies[index]?.port : undefined),
          broker: { host: brokerServer.info.host, port: brokerServer.info.port },
          brokerProxy: brokerProxy ? { host: '127.0.0.1', port: brokerProxy.port } : null,
          order: options.order,
          settle: options.settle,
          rate: options.rate / options.writers,
        };
        return new ChildPlace({
          role,
          index,
          logFolder: options.logFolder,
          config,
          onMessage: (message) => evidence.add(message),
          onCrash: (what) => {
            say(what);
            evidence.crashes.push(what);
          },
        });
      });
    const ground: Ground = {
      relays: places('relay', options.relays),
      writers: places('writer', options.writers),
      consumers: places('consumer', options.consumers),
      databaseProxies,
      brokerProxies,
      database,
      databaseServer,
      broker,
      brokerServer,
    };
    const everybody = [...ground.relays, ...ground.writers, ...ground.consumers];
    undo.push(async () => {
      for (const place of everybody) place.destroy();
    });
    say('starting writers, relays and consumers');
    await Promise.all(everybody.map((place) => place.start()));

    const faults = await strikeAll(ground, options);
    say(`${faults.length} faults are over, waiting for everything to arrive`);
    await Promise.all(ground.writers.map((place) => place.stop()));
    await broker.startReading();
    await settle(ground, say);
    const figures = await evidence.figures.collect(ground, options.settle === 'mark');
    await Promise.all([...ground.relays, ...ground.consumers].map((place) => place.stop()));
    await readAll(broker);
    const committed = await database.committed();
    return {
      history: {
        committed: committed.map((event) => ({ ...event, commit: evidence.commits.get(event.eventId) })),
        rolledBack: evidence.rolledBack,
        parked: await database.parked(),
        records: broker.records(),
        effects: await database.effects(),
        faults,
        figures,
      },
      crashes: evidence.crashes,
    };
  } finally {
    for (const step of undo.toReversed()) await step().catch((error: unknown) => say(`clearing up: ${String(error)}`));
  }
}

function keepLog({ info }: OwnServer, folder: string): void {
  if (info.dataDir === undefined) return;
  copyFileSync(join(dirname(info.dataDir), 'server.log'), join(folder, `${info.name}.log`));
}

/** What the processes tell. */
class Evidence {
  readonly rolledBack: string[] = [];
  readonly commits = new Map<string, CommitInterval>();
  readonly crashes: string[] = [];
  readonly figures = new FiguresCollector();

  add(message: ChildMessage): void {
    if (message.type === 'figures') this.figures.add(message);
    if (message.type === 'rolledBack') this.rolledBack.push(...message.eventIds);
    if (message.type === 'commit') this.commits.set(message.eventId, { begun: message.begun, ended: message.ended });
  }
}

async function strikeAll(ground: Ground, { faults, seconds, say }: RunOptions): Promise<FaultRecord[]> {
  const struck: FaultRecord[] = [];
  const running: Promise<void>[] = [];
  const start = Date.now();
  const strikes = new Faults(ground);
  for (const fault of faults) {
    await sleep(Math.max(0, start + fault.at - Date.now()));
    const at = Date.now() - start;
    const strike = async (): Promise<void> => {
      try {
        const target = await strikes.strike(fault);
        if (target === undefined) return;
        const forMs = Date.now() - start - at;
        struck.push({ kind: fault.kind, target, at, forMs });
        say(`${(at / 1000).toFixed(1)} s: ${fault.kind} (${target}), ${forMs} ms`);
      } catch (error) {
        say(`${(at / 1000).toFixed(1)} s: ${fault.kind} could not be done: ${String(error)}`);
      }
    };
    running.push(strike());
  }
  await sleep(Math.max(0, start + seconds * 1000 - Date.now()));
  await Promise.all(running);
  return struck;
}
