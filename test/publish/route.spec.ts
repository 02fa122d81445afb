import { randomUUID } from 'node:crypto';
import { route } from 'nestjs-transactional-outbox';
import { kafkaPublisher } from 'nestjs-transactional-outbox/kafkajs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../consume/until';
import { type OwnServer, startOwn } from '../services/index.mjs';
import { Flow } from './flow';
import { KafkaBroker } from './kafka-broker';

describe.each(['mysql', 'postgres', 'sqlite'] as const)('topics on two Kafkas, from %s', (database) => {
  let server: OwnServer;
  /** One broker of our own, to be stopped, and the shared one. */
  let audit: KafkaBroker;
  let main: KafkaBroker;
  let flow: Flow | undefined;

  beforeAll(async () => {
    server = await startOwn('kafka');
    audit = await new KafkaBroker(server.info.brokers ?? []).connect();
    main = await new KafkaBroker((process.env['OUTBOX_KAFKA_BROKERS'] ?? '').split(',')).connect();
  });
  afterEach(async () => {
    await flow?.close();
    flow = undefined;
  });
  afterAll(async () => {
    await Promise.all([audit?.close(), main?.close()]);
    await server?.remove();
  });

  it.each(['killed', 'frozen'] as const)('go on where the other cluster is %s, which costs no attempt', { timeout: 180_000 }, async (how) => {
    const audits = await audit.createTopic({ partitions: 2 }, `audit.${randomUUID()}`);
    const orders = await main.createTopic({ partitions: 2 });
    const publisher = route([
      { name: 'audit', topics: /^audit\./, publisher: kafkaPublisher({ brokers: audit.brokers }) },
      { publisher: kafkaPublisher({ brokers: main.brokers }) },
    ]);
    // One lane, and more wait in it for the cluster that is away than a worker takes at once.
    flow = await Flow.start(database, publisher, [audits, orders], { lanes: 1, relay: { maxAttempts: 1, batchSize: 16 } });
    flow.go();
    await Promise.all([flow.advanced(audits), flow.advanced(orders)]);
    await server.kill(how === 'killed' ? 'SIGKILL' : 'SIGSTOP');
    await flow.advanced(orders, 300);
    await flow.pause();
    await until('the other topic is through', async () => (await flow?.count('outbox_pending')) === 0);
    expect((await main.read(orders)).length).toBeGreaterThanOrEqual(8 * flow.rounds);
    expect(await flow.count('outbox_held')).toBeGreaterThan(16);
    const away = await flow.health.check();
    expect(away).toMatchObject({ status: 'degraded', routes: [{ name: 'audit', trouble: { message: expect.any(String) } }, { name: 'route 2', trouble: null }] });
    expect(away.reasons.join()).toContain('audit: ');
    expect(away.relay.unavailableTopics).toMatchObject([{ topic: audits }]);

    if (how === 'killed') await server.restart();
    else await server.kill('SIGCONT');
    await flow.drained();
    expect(await flow.faults(audit, { topics: [audits] })).toEqual([]);
    expect(await flow.faults(main, { topics: [orders] })).toEqual([]);
    expect(await flow.count('outbox_message', 'retry_count > 0 OR last_error IS NOT NULL')).toBe(0);
    expect(await flow.health.check()).toMatchObject({ status: 'up', routes: [{ trouble: null }, { trouble: null }] });
  });

  it('refuse a topic that no route takes, alone', async () => {
    const orders = await main.createTopic();
    const publisher = route([{ topics: orders, publisher: kafkaPublisher({ brokers: main.brokers }) }]);
    flow = await Flow.start(database, publisher, [orders, 'elsewhere'], { relay: { maxAttempts: 2, retryDelay: 20 } });
    await flow.round();
    await flow.drained();
    expect(await flow.faults(main, { topics: [orders] })).toEqual([]);
    expect(await flow.count('outbox_dead')).toBe(8);
    expect(await flow.count('outbox_message', "status = 2 AND retry_count = 2 AND last_error LIKE 'NO_ROUTE: %elsewhere%'")).toBe(8);
  });
});
