import { Kafka, logLevel } from 'kafkajs';
import { diagnoseOutbox, type Finding, type PublisherFactory } from 'nestjs-transactional-outbox';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../consume/until';
import { type OwnCluster, startOwnCluster } from '../services/index.mjs';
import { type DatabaseName, freshDataSource } from '../setup/databases';
import { Flow } from './flow';
import { KafkaBroker } from './kafka-broker';

/** A node is killed, found dead, restarted and in sync again, on a busy machine. */
const TIMEOUT = 240_000;

const HURTS = ['killed', 'restarted in order', 'frozen'] as const;

export interface ClusterCandidate {
  readonly name: string;
  readonly database: DatabaseName;
  readonly create: (brokers: string[]) => PublisherFactory;
  /** What happens to a leader. Default: all that may. */
  readonly hurts?: readonly (typeof HURTS)[number][];
  /** Whether too few replicas are tried too. Default: true. */
  readonly replicas?: boolean;
}

/** What the doctor says of the replicas of topics. */
async function replicasOf(brokers: string[], topics: readonly string[]): Promise<Finding | undefined> {
  const { dataSource, close } = await freshDataSource('sqlite');
  const { findings } = await diagnoseOutbox(dataSource, { topics, kafka: new Kafka({ clientId: 'doctor', brokers, logLevel: logLevel.NOTHING }) });
  await close();
  return findings.find(({ check }) => check === 'topics.replicas');
}

/** A relay under flow, and the brokers under it in trouble: what any publisher has to pass. One cluster for all of them. */
export function describeClusterFaults(candidates: readonly ClusterCandidate[]): void {
  describe('a cluster in trouble', { timeout: TIMEOUT }, () => {
    let cluster: OwnCluster;
    let onlooker: KafkaBroker;
    let flow: Flow | undefined;
    /** Those that are hurt come first: a client has to find its way past them. */
    const addresses = (): string[] => [...cluster.addresses.slice(1), ...cluster.addresses.slice(0, 1)];
    const leaderOf = async (topic: string): Promise<number> => (await onlooker.leaders(topic))[0]?.leader ?? -1;
    /** The onlooker may ask a node that is frozen, and then asks again. */
    const everyPartition = (what: string, topic: string, holds: (one: { leader: number; inSync: number }) => boolean) =>
      until(what, () => onlooker.leaders(topic).then((partitions) => partitions.length > 0 && partitions.every(holds), () => false), TIMEOUT);

    beforeAll(async () => {
      cluster = await startOwnCluster();
      onlooker = await new KafkaBroker(cluster.addresses.slice(0, 1)).connect();
    }, TIMEOUT);
    afterEach(async () => {
      for (const node of cluster.nodes) await cluster.broker(node).kill('SIGCONT');
      await flow?.close();
      flow = undefined;
    });
    afterAll(async () => {
      await onlooker?.close();
      await cluster?.remove();
    });

    describe.each(candidates)('$name, a relay on $database', ({ database, create, hurts = HURTS, replicas = true }) => {
      it.each(hurts)('loses nothing when a leader is %s under flow', async (how) => {
        const topic = await onlooker.createTopic({ partitions: 2, replicas: cluster.nodes });
        flow = await Flow.start(database, create(addresses()), [topic]);
        flow.go();
        await flow.advanced(topic);
        const leader = await leaderOf(topic);
        const broker = cluster.broker(leader);
        if (how === 'restarted in order') {
          await broker.restart();
        } else {
          await broker.kill(how === 'killed' ? 'SIGKILL' : 'SIGSTOP');
          await everyPartition('the other one leads', topic, (one) => one.leader > 0 && one.leader !== leader);
          // Not until the broker is back: the other one serves.
          await flow.advanced(topic);
          if (how === 'killed') await broker.restart();
          else await broker.kill('SIGCONT');
        }
        await everyPartition('the replicas are in sync', topic, (one) => one.inSync === 2);
        await flow.advanced(topic);
        await flow.drained();
        expect(await flow.faults(onlooker)).toEqual([]);
        expect(await flow.count('outbox_message', 'retry_count > 0')).toBe(0);
      });

      it.runIf(replicas)('takes too few replicas for an outage of the topic: no attempt is counted, and others go on', async () => {
        const strict = await onlooker.createTopic({ partitions: 2, replicas: cluster.nodes, minInSync: 2 });
        const loose = await onlooker.createTopic({ partitions: 2, replicas: cluster.nodes });
        const sound = await onlooker.createTopic({ partitions: 1, replicas: [1, ...cluster.nodes], minInSync: 2 });
        expect(await replicasOf(addresses(), [sound])).toMatchObject({ verdict: 'ok' });
        const doubtful = await replicasOf(addresses(), [strict, loose]);
        expect(doubtful?.verdict).toBe('warning');
        expect(doubtful?.seen).toContain(`${strict} takes nothing while any of its 2 replicas is away`);
        expect(doubtful?.seen).toContain(`${loose} has min.insync.replicas=1`);
        // One lane, and more wait in it for the strict topic than a worker takes at once.
        flow = await Flow.start(database, create(addresses()), [strict, loose], { lanes: 1, relay: { maxAttempts: 1, batchSize: 16 } });
        flow.go();
        await flow.advanced(strict);
        const leader = await leaderOf(loose);
        await cluster.broker(leader).kill('SIGKILL');
        await flow.advanced(loose, 120);
        await flow.pause();
        const { relay } = flow;
        // It waits for as long as too few are there, and is tried again from time to time.
        await until('the topic is known to be in trouble', () => relay.status().unavailableTopics.some(({ error }) => error.includes('NOT_ENOUGH_REPLICAS')));
        expect(relay.status().unavailableTopics).toMatchObject([{ topic: strict }]);
        expect(await replicasOf(cluster.addresses, [strict])).toMatchObject({ verdict: 'fault', seen: expect.stringContaining(`${strict} takes nothing now`) as unknown });
        expect(await flow.count('outbox_message', 'retry_count > 0 OR last_error IS NOT NULL')).toBe(0);
        expect(await flow.count('outbox_pending') + (await flow.count('outbox_held'))).toBeGreaterThan(0);
        await cluster.broker(leader).restart();
        await flow.drained();
        expect(flow.relay.status().unavailableTopics).toEqual([]);
        expect(await flow.faults(onlooker)).toEqual([]);
        expect(await flow.count('outbox_message', 'retry_count > 0')).toBe(0);
      });
    });
  });
}
