import { randomUUID } from 'node:crypto';
import type { PublisherFactory } from 'nestjs-transactional-outbox';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../consume/until';
import type { DatabaseName } from '../setup/databases';
import { Flow } from './flow';
import { KafkaBroker } from './kafka-broker';
import type { ClientSettings } from './kafka-clients';

const UNTOUCHED = 'retry_count > 0 OR last_error IS NOT NULL';

/** A relay under flow, and the topics under it in trouble: what any publisher has to pass. */
export function describeTopicFaults(
  name: string,
  database: DatabaseName,
  create: (settings: ClientSettings) => PublisherFactory,
  { mayCreateTopics = true } = {},
): void {
  describe(`${name}, a relay on ${database}, and topics in trouble`, { timeout: 180_000 }, () => {
    let onlooker: KafkaBroker;
    let flow: Flow;
    const brokers = (): string[] => (process.env['OUTBOX_KAFKA_BROKERS'] ?? '').split(',');
    const start = async (topics: string[], relay = {}, createsTopics = false): Promise<void> => {
      flow = await Flow.start(database, create({ brokers: brokers(), createsTopics }), topics, { relay });
    };

    beforeEach(async () => {
      onlooker = await new KafkaBroker(brokers()).connect();
    });
    afterEach(async () => {
      await flow.close();
      await onlooker.close();
    });

    it('waits for a topic that is deleted under flow, while others go on, and fills the new one', async () => {
      const [topic, other] = [await onlooker.createTopic({ partitions: 2 }), await onlooker.createTopic({ partitions: 2 })];
      await start([topic, other], { maxAttempts: 1 });
      flow.go();
      await flow.advanced(topic);
      await onlooker.deleteTopic(topic);
      await until('the topic is known to be missing', () => flow.relay.status().missingTopics.includes(topic), 60_000);
      const first = flow.forget();
      await flow.advanced(other);
      expect((await flow.health.check()).reasons.join()).toContain(`these topics do not exist: ${topic}`);
      await onlooker.createTopic({ partitions: 2 }, topic);
      await flow.advanced(topic);
      await flow.drained();
      expect(await flow.faults(onlooker, { topics: [topic], first })).toEqual([]);
      expect(await flow.faults(onlooker, { topics: [other] })).toEqual([]);
      expect(await flow.count('outbox_message', UNTOUCHED)).toBe(0);
      expect((await flow.health.check()).status).toBe('up');
    });

    it('is not taken in by a topic of the same name that has taken the place of another', async () => {
      const topic = await onlooker.createTopic({ partitions: 2 });
      await start([topic], { maxAttempts: 1 });
      for (let time = 0; time < 3; time += 1) {
        flow.go();
        await flow.advanced(topic);
        await onlooker.deleteTopic(topic);
        await onlooker.createTopic({ partitions: 2 }, topic);
        // What is acknowledged before this may be on the old one.
        await flow.drained();
        const first = flow.forget();
        flow.go();
        await flow.advanced(topic);
        await flow.drained();
        expect(await flow.faults(onlooker, { first })).toEqual([]);
      }
      expect(await flow.count('outbox_message', UNTOUCHED)).toBe(0);
    });

    it('refuses by its id what a live topic takes no longer, lets others pass, and sends it when it is taken again', async () => {
      const topic = await onlooker.createTopic({ partitions: 2 });
      await start([topic], { maxAttempts: 1_000, maxRetryDelay: 300 });
      const [before, large] = [randomUUID(), randomUUID()];
      const big = (messageId: string) => ({ topic, type: 'big', key: 'k0', messageId, payload: 'x'.repeat(60_000) });
      const refused: [string, string][] = [];
      flow.relay.on('held', ({ message, error }) => refused.push([message.messageId, error]));
      await flow.emit([big(before)]);
      await flow.round();
      await flow.drained();
      await onlooker.limitRecords(topic, 20_000);
      // The broker learns of it a moment later.
      await until('a large one is refused', async () => {
        if (refused.length === 0) await flow.emit([{ ...big(randomUUID()), key: 'probe' }]);
        await new Promise((resolve) => setTimeout(resolve, 300));
        return refused.length > 0;
      });
      await flow.emit([big(large)]);
      for (let n = 0; n < 5; n += 1) await flow.round();
      await until('it is refused', () => refused.some(([id, error]) => id === large && error.includes('MESSAGE_TOO_LARGE')));
      await until('the others are through', async () => new Set((await onlooker.read(topic)).filter(({ value }) => value === '5').map(({ key }) => key)).size === 7);
      expect((await onlooker.read(topic)).filter(({ key }) => key === 'k0')).toHaveLength(2);
      await onlooker.limitRecords(topic, 1_000_000);
      await flow.drained();
      const ofKey = (await onlooker.read(topic)).filter(({ key }) => key === 'k0').map(({ value }) => (value?.length === 60_000 ? 'big' : value));
      expect(ofKey).toEqual(['big', '0', 'big', '1', '2', '3', '4', '5']);
    });

    // G6
    it.each(mayCreateTopics ? [true, false] : [false])('first sends to a new topic, which the client may create: %s', async (createsTopics) => {
      const [fresh, other] = [`fresh-${randomUUID()}`, await onlooker.createTopic({ partitions: 2 })];
      await start([fresh, other], { maxAttempts: 1 }, createsTopics);
      await flow.round();
      if (!createsTopics) {
        await until('the topic is known to be missing', () => flow.relay.status().missingTopics.includes(fresh));
        await until('the others are through', async () => (await onlooker.count(other)) === 8);
        await onlooker.createTopic({ partitions: 2 }, fresh);
      }
      await flow.drained();
      expect(await flow.faults(onlooker)).toEqual([]);
      expect(await flow.count('outbox_message', UNTOUCHED)).toBe(0);
    });
  });
}
