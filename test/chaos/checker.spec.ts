import { describe, expect, it } from 'vitest';
import { check, isSound, type Verdict } from './src/checker.js';
import type { CommittedEvent, History, TopicRecord } from './src/history.js';

/** Two keys with three events each, published in order, one event parked, each with its effect. */
function sound(): History {
  const a = events('a', 3);
  const b = events('b', 4);
  const parked = b[3]?.eventId ?? '';
  const published = [a[0], b[0], a[1], b[1], a[2], b[2]].filter((event) => event !== undefined);
  return history({ committed: [...a, ...b], rolledBack: ['undone'], parked: [parked], records: records(published) });
}

function events(key: string, count: number): CommittedEvent[] {
  return Array.from({ length: count }, (_, index) => ({ eventId: `${key}${index + 1}`, topic: 't', key, seq: index + 1 }));
}

function records(of: readonly CommittedEvent[]): TopicRecord[] {
  return of.map((event, offset) => record(event, offset));
}

function record({ eventId, topic, key }: CommittedEvent, offset: number): TopicRecord {
  return { topic, partition: 0, offset, messageId: `id of ${eventId}`, eventId, key, fingerprint: `value of ${eventId}` };
}

/** With the effects of what is published, unless it says otherwise. */
function history(given: Partial<History>): History {
  const committed = new Set(given.committed?.map(({ eventId }) => eventId));
  const ids = new Set(given.records?.flatMap(({ eventId }) => (eventId !== null && committed.has(eventId) ? [eventId] : [])));
  return {
    committed: [],
    rolledBack: [],
    parked: [],
    records: [],
    effects: [...ids].map((eventId) => ({ consumer: 'c', eventId })),
    faults: [],
    ...given,
  };
}

/** A topic on which these events stand in this order; all of them have committed. */
function topic(order: readonly string[]): History {
  const committed = [...new Set(order)].sort().map((eventId) => ({
    eventId,
    topic: 't',
    key: eventId.slice(0, 1),
    seq: Number(eventId.slice(1)),
  }));
  const byId = new Map(committed.map((event) => [event.eventId, event]));
  return history({ committed, records: records(order.map((id) => byId.get(id)).filter((event) => event !== undefined)) });
}

function verdictOf(broken: History): Verdict {
  return check(broken).verdict;
}

describe('the checker', () => {
  it('finds nothing wrong with a sound history', () => {
    const { verdict, findings } = check({ ...sound(), faults: [{ kind: 'k', target: 't', at: 0, forMs: 1 }] });
    expect(verdict).toEqual({
      faults: 1,
      committed: 7,
      published: 6,
      parked: 1,
      lost: 0,
      invented: 0,
      orderViolations: 0,
      lateCopies: 0,
      duplicates: 0,
      duplicatesPerFault: 0,
      effectsWrong: 0,
      figuresWrong: 0,
    });
    expect(findings).toEqual([]);
    expect(isSound(verdict)).toBe(true);
  });

  describe('sees what is lost', () => {
    it('when an event is missing on the topic', () => {
      const { records: all, ...rest } = sound();
      const without = history({ ...rest, effects: [], records: all.filter(({ eventId }) => eventId !== 'a2') });
      expect(verdictOf(without).lost).toBe(1);
    });

    it('when an event is neither parked nor published', () => {
      const verdict = verdictOf({ ...sound(), parked: [] });
      expect(verdict).toMatchObject({ lost: 1, parked: 0 });
      expect(isSound(verdict)).toBe(false);
    });

    it('when everything is', () => {
      expect(verdictOf(history({ committed: events('a', 5) })).lost).toBe(5);
    });
  });

  describe('sees what is invented', () => {
    const add = (extra: Partial<TopicRecord>): Verdict => {
      const base = sound();
      const one = record({ eventId: 'x', topic: 't', key: 'a', seq: null }, base.records.length);
      return verdictOf({ ...base, records: [...base.records, { ...one, ...extra }] });
    };

    it('when a rolled back event is published', () => {
      expect(add({ eventId: 'undone' }).invented).toBe(1);
    });

    it('when nobody knows of the event', () => {
      expect(add({}).invented).toBe(1);
    });

    it('when a record carries no event', () => {
      expect(add({ eventId: null }).invented).toBe(1);
    });

    it('when a rolled back event is parked', () => {
      const base = sound();
      expect(verdictOf({ ...base, parked: [...base.parked, 'undone'] }).invented).toBe(1);
    });

    it('when an event is published under another key, or on another topic', () => {
      expect(add({ eventId: 'a1', messageId: 'id of a1', fingerprint: 'value of a1', key: 'b' }).invented).toBe(1);
      expect(add({ eventId: 'a1', messageId: 'id of a1', fingerprint: 'value of a1', topic: 'u' }).invented).toBe(1);
    });

    // P4: a copy is the same message.
    it('when a copy has another message id, none, or other contents', () => {
      expect(add({ eventId: 'a3', messageId: 'another', fingerprint: 'value of a3' }).invented).toBe(1);
      expect(add({ eventId: 'a3', messageId: null, fingerprint: 'value of a3' }).invented).toBe(1);
      expect(add({ eventId: 'a3', messageId: 'id of a3', fingerprint: 'another' }).invented).toBe(1);
    });

    it('when two events share a message id', () => {
      const base = sound();
      const shared = base.records.map((one) => ({ ...one, messageId: one.eventId === 'b1' ? 'id of a1' : one.messageId }));
      expect(verdictOf({ ...base, records: shared }).invented).toBe(1);
    });
  });

  describe('sees disorder', () => {
    it('when a key goes back', () => {
      expect(verdictOf(topic(['a1', 'a3', 'a2', 'a4'])).orderViolations).toBe(1);
      expect(verdictOf(topic(['a3', 'a1', 'a2'])).orderViolations).toBe(2);
    });

    it('but not between keys, and not in copies', () => {
      expect(verdictOf(topic(['b2', 'a1', 'a2', 'b3'])).orderViolations).toBe(0);
      expect(verdictOf(topic(['a1', 'a2', 'a1', 'a2', 'a3'])).orderViolations).toBe(0);
    });

    it('but not where a message between was parked', () => {
      expect(verdictOf({ ...topic(['a1', 'a3']), committed: events('a', 3), parked: ['a2'] })).toMatchObject({
        orderViolations: 0,
        lost: 0,
      });
    });

    it('when a parked message comes after its key went on', () => {
      expect(verdictOf({ ...topic(['a1', 'a3', 'a2']), parked: ['a2'] }).orderViolations).toBe(1);
    });

    it('when a key is on two partitions', () => {
      const base = topic(['a1', 'a2']);
      const split = base.records.map((one, index) => ({ ...one, partition: index }));
      expect(verdictOf({ ...base, records: split }).orderViolations).toBe(1);
    });

    it('when a commit was over before that of an event in front of it began', () => {
      const timed = (eventId: string, begun: number, ended: number): CommittedEvent => ({
        eventId,
        topic: 't',
        key: 'a',
        seq: null,
        commit: { begun, ended },
      });
      const [one, two, three] = [timed('a1', 1, 2), timed('a2', 3, 5), timed('a3', 4, 6)];
      const judge = (...order: CommittedEvent[]): number =>
        verdictOf(history({ committed: [one, two, three], records: records(order) })).orderViolations;
      expect(judge(one, two, three)).toBe(0);
      // These two overlap: either may have been first.
      expect(judge(one, three, two)).toBe(0);
      expect(judge(two, one, three)).toBe(1);
      expect(judge(three, two, one)).toBe(1);
    });
  });

  describe('counts copies', () => {
    it('that follow a fault in their order, as duplicates', () => {
      const verdict = verdictOf({ ...topic(['a1', 'b1', 'a2', 'a1', 'b1', 'a2']), faults: Array.from({ length: 2 }, () => fault()) });
      expect(verdict).toMatchObject({ duplicates: 3, duplicatesPerFault: 1.5, lateCopies: 0 });
      expect(isSound(verdict)).toBe(true);
    });

    it('of a whole batch and of its beginning only, sent again before the rest', () => {
      expect(verdictOf(topic(['a1', 'a2', 'a3', 'a1', 'a2', 'a3', 'a4'])).lateCopies).toBe(0);
      expect(verdictOf(topic(['a1', 'a2', 'a3', 'a1', 'a1', 'a2', 'a3'])).lateCopies).toBe(0);
    });

    it('that stay behind newer messages of their key, as late', () => {
      expect(verdictOf(topic(['a1', 'a2', 'a1']))).toMatchObject({ lateCopies: 1, duplicates: 1 });
      expect(verdictOf(topic(['a1', 'a2', 'a3', 'a1', 'a2', 'a4']))).toMatchObject({ lateCopies: 2, duplicates: 2 });
      expect(verdictOf(topic(['a1', 'b1', 'a1']))).toMatchObject({ lateCopies: 0, duplicates: 1 });
    });

    const fault = () => ({ kind: 'k', target: 't', at: 0, forMs: 1 });
  });

  describe('sees wrong effects', () => {
    const withEffects = (change: (effects: History['effects']) => History['effects']): Verdict => {
      const base = sound();
      return verdictOf({ ...base, effects: change(base.effects) });
    };

    it('when one is missing, or all are', () => {
      expect(withEffects((effects) => effects.slice(1)).effectsWrong).toBe(1);
      expect(withEffects(() => []).effectsWrong).toBe(6);
    });

    it('when one happened twice', () => {
      const verdict = withEffects((effects) => [...effects, ...effects.slice(0, 1)]);
      expect(verdict.effectsWrong).toBe(1);
      expect(isSound(verdict)).toBe(false);
    });

    it('when one belongs to nothing that was published', () => {
      expect(withEffects((effects) => [...effects, { consumer: 'c', eventId: 'undone' }]).effectsWrong).toBe(1);
      expect(withEffects((effects) => [...effects, { consumer: 'c', eventId: 'b4' }]).effectsWrong).toBe(1);
    });

    it('for each consumer by itself', () => {
      expect(withEffects((effects) => [...effects, { consumer: 'd', eventId: 'a1' }]).effectsWrong).toBe(5);
    });
  });
});
