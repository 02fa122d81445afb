import { PooledClaimSessions, SerialClaimSessions } from '../../libs/outbox/src/relay/claim-sessions';
import { Relay } from '../../libs/outbox/src/relay/relay';
import { DEFAULT_RELAY_OPTIONS, type RelayOptions } from '../../libs/outbox/src/relay/relay-options';
import { SerialQueryRunners } from '../../libs/outbox/src/transaction/serial-query-runner';
import type { StoreFixture } from '../store/fixture';
import { ScriptedPublishers } from './scripted-publisher';

export interface RunningRelay {
  readonly relay: Relay;
  readonly publishers: ScriptedPublishers;
}

/** Short pauses: tests wait for what happens, not for time. */
export const QUICK: Partial<RelayOptions> = { retryDelay: 20, maxRetryDelay: 200, publishTimeout: 500, sessionTimeout: 2500, shutdownTimeout: 3000 };

/** Starts relays on a store, and stops them. */
export class Relays {
  private readonly running: { relay: Relay; poll: NodeJS.Timeout }[] = [];

  readonly serial: SerialQueryRunners;

  constructor(readonly f: StoreFixture) {
    this.serial = new SerialQueryRunners(f.dataSource, f.dataSource.createQueryRunner.bind(f.dataSource));
  }

  start(options: RelayOptions = {}, publishers = new ScriptedPublishers(), poll = 50): RunningRelay {
    const { store, dataSource } = this.f;
    const serial = store.dialect.name === 'sqlite';
    const resolved = { ...DEFAULT_RELAY_OPTIONS, ...QUICK, ...options, ...(serial ? { concurrency: 1 } : {}) };
    const sessions = serial
      ? new SerialClaimSessions(store, () => this.serial.create())
      : new PooledClaimSessions(store, dataSource.options, { workers: resolved.concurrency, sessionTimeout: resolved.sessionTimeout });
    const relay = new Relay(sessions, publishers.factory, store, resolved);
    relay.start();
    this.running.push({ relay, poll: setInterval(() => relay.poll(), poll) });
    return { relay, publishers };
  }

  async stopAll(): Promise<void> {
    for (const { relay, poll } of this.running.splice(0)) {
      clearInterval(poll);
      await relay.stop();
    }
  }
}

/** Waits until something is true; the test's own timeout is the limit. */
export async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await what())) await new Promise((resolve) => setTimeout(resolve, 10));
}
