import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { PublisherFactory } from 'nestjs-transactional-outbox';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../consume/until';
import { type OwnServer, startOwn } from '../services/index.mjs';
import type { DatabaseName } from '../setup/databases';
import { Flow } from './flow';
import { KafkaBroker } from './kafka-broker';

/** Megabytes that the heap may grow by while messages wait: a batch of them is kept over and over if it leaks. */
const HEAP_ROOM = 12;

/** A relay, and its only broker in trouble: what any publisher has to pass. */
export function describeBrokerFaults(name: string, database: DatabaseName, create: (brokers: string[]) => PublisherFactory): void {
  describe(`${name}, a relay on ${database}, and its broker in trouble`, { timeout: 240_000 }, () => {
    let server: OwnServer;
    let onlooker: KafkaBroker;
    let topic: string;
    let flow: Flow;
    const publisher = (): PublisherFactory => create(server.info.brokers ?? []);

    beforeAll(async () => {
      server = await startOwn('kafka');
      onlooker = await new KafkaBroker(server.info.brokers ?? []).connect();
    });
    afterEach(async () => {
      await server.kill('SIGCONT');
      await flow.close();
    });
    afterAll(async () => {
      await onlooker?.close();
      await server?.remove();
    });

    // A14, G5
    it('starts and ends, time and again, while the broker is away, and sends what waits when it is there', async () => {
      topic = await onlooker.createTopic({ partitions: 2 });
      flow = await Flow.start(database, publisher(), [topic], { relay: { enabled: false } });
      await flow.round();
      await flow.round();
      await server.kill('SIGKILL');
      for (let time = 0; time < 3; time += 1) {
        await flow.stopApp();
        await flow.startApp({ enabled: true });
      }
      await until('the relay knows it', () => flow.relay.status().trouble?.stage === 'broker');
      expect(await flow.count('outbox_pending')).toBe(16);
      await server.restart();
      await flow.drained();
      for (let time = 0; time < 3; time += 1) {
        await flow.stopApp();
        await flow.startApp({ enabled: true });
        await flow.round();
      }
      await flow.drained();
      expect(await flow.faults(onlooker)).toEqual([]);
      expect(await flow.count('outbox_message', 'retry_count > 0')).toBe(0);
    });

    // B7
    it('ends while the broker is frozen, with nothing settled, and sends it after the next start', async () => {
      topic = await onlooker.createTopic({ partitions: 2 });
      flow = await Flow.start(database, publisher(), [topic]);
      await flow.round();
      await flow.drained();
      await server.kill('SIGSTOP');
      await flow.round();
      await until('the relay knows it', () => flow.relay.status().trouble?.stage === 'broker');
      await flow.stopApp();
      await flow.startApp({ enabled: false });
      expect(await flow.count('outbox_pending')).toBe(8);
      await flow.stopApp();
      await server.kill('SIGCONT');
      await flow.startApp({ enabled: true });
      await flow.round();
      await flow.drained();
      expect(await flow.faults(onlooker)).toEqual([]);
    });

    // G2
    it('goes on with a broker whose log was wiped, all workers at once', async () => {
      topic = await onlooker.createTopic({ partitions: 3 });
      flow = await Flow.start(database, publisher(), [topic], { relay: { concurrency: 4, batchSize: 8 } });
      flow.go();
      await flow.advanced(topic);
      await flow.drained();
      await server.kill('SIGKILL');
      const data = server.info.dataDir ?? '';
      const logs = (await readdir(data)).filter((file) => file.startsWith(topic));
      expect(logs).toHaveLength(3);
      await Promise.all(logs.map((file) => rm(join(data, file), { recursive: true })));
      await server.restart();
      const first = flow.forget();
      flow.go();
      await flow.advanced(topic, 400);
      await flow.drained();
      expect(await flow.faults(onlooker, { first })).toEqual([]);
    });

    // G12
    it('keeps nothing but a batch for each worker while the broker is away', async () => {
      topic = await onlooker.createTopic({ partitions: 2 });
      let [running, most, tries] = [0, 0, 0];
      const inner = publisher();
      const counted: PublisherFactory = () => {
        const one = inner();
        return {
          connect: () => {
            tries += 1;
            return one.connect();
          },
          close: () => one.close(),
          async publish(records, options) {
            running += records.length;
            most = Math.max(most, running);
            return one.publish(records, options).finally(() => (running -= records.length));
          },
        };
      };
      flow = await Flow.start(database, counted, [topic], { relay: { concurrency: 2, batchSize: 100, pollInterval: 100, maxRetryDelay: 200 } });
      await server.kill('SIGKILL');
      const value = 'x'.repeat(2_000);
      for (let n = 0; n < 10; n += 1) {
        await flow.emit(Array.from({ length: 500 }, (_, at) => ({ topic, type: 'counted', key: `k${at % 40}`, payload: `${value}${n * 500 + at}` })));
      }
      await until('it was tried some times', () => tries > 10);
      const before = heap();
      await until('it was tried many more times', () => tries > 60, 120_000);
      expect(heap() - before).toBeLessThan(HEAP_ROOM);
      expect(most).toBeLessThanOrEqual(200);
      await server.restart();
      await flow.drained();
      const values = (await onlooker.read(topic)).map((record) => record.value);
      expect(new Set(values).size).toBe(5_000);
      expect(most).toBeLessThanOrEqual(200);
    });
  });
}

/** Megabytes in use. */
function heap(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed / 2 ** 20;
}
