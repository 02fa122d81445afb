import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { InMemoryBroker } from '../in-memory/in-memory-broker';
import { acknowledged, unknown } from '../outcome';
import type { Publisher, PublishOutcome, PublishRecord } from '../publisher';
import { type Route, route } from './route';

const record = (topic: string): PublishRecord => ({ messageId: topic, topic, key: 'k', value: '{}', headers: {}, timestamp: 0 });
const records = ['audit.a', 'orders', 'audit.b'].map(record);
const statuses = (outcomes: readonly PublishOutcome[]): string[] =>
  outcomes.map((outcome) => (outcome.status === 'acknowledged' ? outcome.status : outcome.failure.code));

/** A road that is as it is told. */
class Fake {
  down = false;
  readonly journal: string[] = [];
  answer = (): PublishOutcome => acknowledged(0, null);

  readonly factory = (): Publisher => {
    this.journal.push('create');
    return {
      connect: async () => {
        this.journal.push('connect');
        if (this.down) throw new Error('ECONNREFUSED');
      },
      publish: async (batch) => {
        this.journal.push(`publish ${batch.map(({ topic }) => topic).join()}`);
        return batch.map(() => (this.down ? unknown('TIMEOUT', 'no answer') : this.answer()));
      },
      close: async () => void this.journal.push('close'),
    };
  };
}

describe('route', () => {
  let [audit, main] = [new Fake(), new Fake()];
  const make = () => route([{ name: 'audit', topics: /^audit\./g, publisher: audit.factory }, { publisher: main.factory }]);
  const publish = (publisher: Publisher) => publisher.publish(records, { timeout: 1_000 });

  beforeEach(() => {
    [audit, main] = [new Fake(), new Fake()];
    vi.spyOn(Logger.prototype, 'error').mockReturnValue();
    vi.spyOn(Logger.prototype, 'log').mockReturnValue();
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it('takes the first route that fits, whatever the flags of its pattern, and keeps the outcomes in order', async () => {
    const publisher = make()();
    for (let round = 0; round < 3; round += 1) expect(statuses(await publish(publisher))).toEqual(['acknowledged', 'acknowledged', 'acknowledged']);
    expect(audit.journal).toEqual(['create', ...Array.from({ length: 3 }, () => 'publish audit.a,audit.b')]);
    expect(main.journal).toEqual(['create', ...Array.from({ length: 3 }, () => 'publish orders')]);
  });

  it('refuses what no route takes', async () => {
    const broker = new InMemoryBroker();
    const publisher = route([{ topics: ['orders', 'payments'], publisher: broker.publisher() }])();
    expect(statuses(await publish(publisher))).toEqual(['NO_ROUTE', 'acknowledged', 'NO_ROUTE']);
  });

  it('waits for a road once, then only for its connection, and says so', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const factory = make();
    const publisher = factory();
    audit.down = true;
    for (let round = 0; round < 3; round += 1) expect(statuses(await publish(publisher))).toEqual(['ROUTE_AWAY', 'acknowledged', 'ROUTE_AWAY']);
    expect(audit.journal).toEqual(['create', 'publish audit.a,audit.b', 'connect']);
    expect(factory.routes?.()).toMatchObject([{ name: 'audit', trouble: { message: 'CONNECTION_FAILED: ECONNREFUSED' } }, { name: 'route 2', trouble: null }]);
    audit.down = false;
    vi.advanceTimersByTime(1_000);
    await publish(publisher);
    await vi.waitFor(() => expect(factory.routes?.()[0]?.trouble).toBeNull());
    expect(statuses(await publish(publisher))).toEqual(['acknowledged', 'acknowledged', 'acknowledged']);
  });

  it('calls it an outage, not a topic’s own trouble, when all roads are away', async () => {
    const publisher = make()();
    audit.down = main.down = true;
    expect(statuses(await publish(publisher))).toEqual(['TIMEOUT', 'TIMEOUT', 'TIMEOUT']);
    await expect(publisher.connect()).rejects.toThrow('ECONNREFUSED');
    main.down = false;
    await publisher.connect();
    expect(statuses(await publish(publisher))).toEqual(['ROUTE_AWAY', 'acknowledged', 'ROUTE_AWAY']);
  });

  it('does not call a road away because of one topic, or because a record is refused', async () => {
    const factory = make();
    audit.answer = () => unknown('UNKNOWN_TOPIC_OR_PARTITION', 'no such topic');
    expect(statuses(await publish(factory()))).toEqual(['UNKNOWN_TOPIC_OR_PARTITION', 'acknowledged', 'UNKNOWN_TOPIC_OR_PARTITION']);
    expect(factory.routes?.()[0]?.trouble).toBeNull();
  });

  it('closes a publisher that breaks its contract before another takes its place; the other road knows nothing of it', async () => {
    const publisher = make()();
    audit.answer = () => {
      throw new TypeError('a bug');
    };
    expect(statuses(await publish(publisher))).toEqual(['ROUTE_AWAY', 'acknowledged', 'ROUTE_AWAY']);
    expect(audit.journal).toEqual(['create', 'publish audit.a,audit.b', 'close']);
    expect(main.journal).toEqual(['create', 'publish orders']);
  });

  it('closes all roads', async () => {
    const publisher = make()();
    await publisher.connect();
    await publisher.close();
    expect([audit.journal.at(-1), main.journal.at(-1)]).toEqual(['close', 'close']);
  });

  it('says at once which route is wrong, and why', () => {
    const { factory } = main;
    const wrong: [unknown, RegExp][] = [
      [[], /at least one route/],
      [undefined, /at least one route/],
      [[{ publisher: factory }, { topics: 'a', publisher: factory }], /"route 1" has no topics/],
      [[{ topics: [], publisher: factory }], /takes no topic/],
      [[{ topics: 'no topic', publisher: factory }], /"no topic", which is neither/],
      [[{ topics: [/a/, 7], publisher: factory }], /takes 7/],
      [[{ topics: 'a' }], /needs a publisher/],
      [[{ topic: 'a', publisher: factory }], /unknown option topic/],
      [[{ name: 'x', topics: 'a', publisher: factory }, { name: 'x', publisher: factory }], /name of its own/],
      [[null], /must be an object/],
    ];
    for (const [routes, message] of wrong) expect(() => route(routes as Route[])).toThrow(message);
  });
});
