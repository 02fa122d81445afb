import { setTimeout as sleep } from 'node:timers/promises';
import type { OwnServer } from '../../services/index.mjs';
import type { ChaosBroker } from './broker.js';
import type { ChildPlace } from './child.js';
import type { ChaosDatabase } from './database.js';
import { TOPICS } from './events.js';
import type { FaultKind, PlannedFault } from './plan.js';
import type { ProxyMode, TcpProxy } from './tcp-proxy.js';

/** Everything that faults are done to. */
export interface Ground {
  readonly relays: readonly ChildPlace[];
  readonly writers: readonly ChildPlace[];
  readonly consumers: readonly ChildPlace[];
  /** One for each relay. */
  readonly databaseProxies: readonly TcpProxy[];
  readonly brokerProxies: readonly TcpProxy[];
  readonly database: ChaosDatabase;
  readonly databaseServer: OwnServer;
  readonly broker: ChaosBroker;
  readonly brokerServer: OwnServer;
}

/** What a fault needs for itself: two that need the same do not overlap. */
const NEEDS: Partial<Record<FaultKind, 'database' | 'broker' | 'topic'>> = {
  'all-sessions': 'database',
  'relay-sessions': 'database',
  'database-restart': 'database',
  'broker-freeze': 'broker',
  'broker-restart': 'broker',
  'topic-limit': 'broker',
  'topic-permission': 'broker',
};

/** Does the faults of a plan. */
export class Faults {
  private readonly busy = new Set<string>();

  constructor(private readonly ground: Ground) {}

  /** Resolves, when the fault is over, to what it hit; to `undefined` when it could not be done. */
  async strike(fault: PlannedFault): Promise<string | undefined> {
    const need = NEEDS[fault.kind];
    if (need === undefined) return this.act(fault);
    if (this.busy.has(need)) return undefined;
    this.busy.add(need);
    try {
      return await this.act(fault);
    } finally {
      this.busy.delete(need);
    }
  }

  private async act({ kind, target, forMs }: PlannedFault): Promise<string | undefined> {
    const { relays, writers, consumers, database, databaseServer, databaseProxies, broker, brokerServer, brokerProxies } =
      this.ground;
    const relay = at(relays, target);
    switch (kind) {
      case 'relay-kill':
      case 'writer-kill':
      case 'consumer-kill': {
        const victim = at({ 'relay-kill': relays, 'writer-kill': writers, 'consumer-kill': consumers }[kind], target);
        await victim.killAndReplace(Math.min(forMs, 1500));
        return victim.name;
      }
      case 'host-loss': {
        const sessions = at(databaseProxies, target).vanish();
        at(brokerProxies, target).vanish();
        await relay.killAndReplace(Math.min(forMs, 1500));
        return `${relay.name}, ${sessions} sessions`;
      }
      case 'relay-freeze': {
        if (!relay.freeze()) return undefined;
        await sleep(forMs);
        relay.thaw();
        return relay.name;
      }
      case 'relay-sessions': {
        const ended = await database.endSessions(at(databaseProxies, target).outgoingPorts);
        return `${ended} of ${relay.name}`;
      }
      case 'all-sessions':
        return `${await database.endSessions()} sessions`;
      case 'database-restart':
        await databaseServer.kill('SIGKILL');
        await databaseServer.restart();
        return 'database';
      case 'broker-freeze':
        await brokerServer.kill('SIGSTOP');
        await sleep(forMs);
        await brokerServer.kill('SIGCONT');
        return 'broker';
      case 'broker-restart':
        await brokerServer.kill('SIGKILL');
        await brokerServer.restart();
        return 'broker';
      case 'database-cut':
      case 'database-stall':
      case 'database-unheard':
      case 'database-slow':
        return this.disturb(at(databaseProxies, target), kind, forMs, relay);
      case 'broker-cut':
      case 'broker-stall':
      case 'broker-unheard':
      case 'broker-slow':
        return this.disturb(at(brokerProxies, target), kind, forMs, relay);
      case 'poison':
        at(writers, target).send({ type: 'poison', count: 1 + (target % 3) });
        return at(writers, target).name;
      case 'topic-limit':
        await broker.limit(TOPICS.notes.name, 1000);
        await sleep(forMs);
        await broker.limit(TOPICS.notes.name, TOPICS.notes.maxBytes);
        return TOPICS.notes.name;
      case 'topic-permission': {
        const topic = at(Object.values(TOPICS), target).name;
        await broker.forbidWriting(topic);
        await sleep(forMs);
        await broker.allowWriting(topic);
        return topic;
      }
    }
  }

  private async disturb(proxy: TcpProxy, kind: FaultKind, forMs: number, relay: ChildPlace): Promise<string | undefined> {
    const name = `proxy ${proxy.port}`;
    if (this.busy.has(name)) return undefined;
    this.busy.add(name);
    const modes: Partial<Record<string, ProxyMode>> = { cut: 'cut', stall: 'stalled', unheard: 'unheard', slow: 'slow' };
    proxy.set(modes[kind.split('-')[1] ?? ''] ?? 'open');
    await sleep(forMs);
    proxy.set('open');
    this.busy.delete(name);
    return relay.name;
  }
}

function at<T>(items: readonly T[], target: number): T {
  const item = items[target % items.length];
  if (item === undefined) throw new Error('there is nothing to hit');
  return item;
}
