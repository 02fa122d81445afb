import { describe, expect, it } from 'vitest';
import { wrongFigures } from './src/figures.js';
import type { Figures, History, ProcessFigures, Series, TableFigures } from './src/history.js';

const T = 't';
const of = (name: string, value: number, labels: Record<string, string> = { topic: T }): Series => ({ name: `outbox_${name}`, labels, value });
const gauges = (dead: number): Series[] => [of('messages_dead', dead), of('messages_pending', 0), of('messages_held', 0), of('database_up', 1, {}), of('messages_lost', 0, {})];
const one = (process: string, series: Series[], more: Partial<ProcessFigures> = {}): ProcessFigures => ({ process, isWhole: !process.startsWith('writer'), survived: true, series, ...more });

/** Ten were committed, nine sent, one of them twice, and one is dead. */
function sound(): History & { figures: Figures } {
  const committed = Array.from({ length: 10 }, (_, n) => ({ eventId: `writer-0.1-${n + 1}`, topic: T, key: 'k', seq: n + 1 }));
  const sent = [...committed.slice(1), ...committed.slice(1, 2)];
  return {
    committed,
    rolledBack: [],
    parked: ['writer-0.1-1'],
    records: sent.map(({ eventId }, offset) => ({ topic: T, partition: 0, offset, messageId: eventId, eventId, key: 'k', fingerprint: eventId })),
    effects: [],
    faults: [],
    figures: {
      processes: [
        one('writer-0.1', [of('messages_emitted_total', 10)]),
        one('relay-0.1', [
          ...gauges(1), of('messages_published_total', 8), of('messages_unanswered_total', 1), of('lanes_lost_messages_total', 1, {}),
          of('messages_refused_total', 5), of('messages_retried_total', 4), of('messages_parked_total', 1),
        ]),
        one('consumer-0.1', [
          ...gauges(1), of('consumer_messages_total', 8, { consumer: 'c', outcome: 'handled' }), of('consumer_messages_total', 1, { consumer: 'c', outcome: 'duplicate' }),
          of('consumer_failures_total', 1, { consumer: 'c' }),
        ]),
      ],
      kills: { relay: 0, consumer: 0 },
      tables: { pending: {}, held: {}, dead: { [T]: 1 }, sent: { [T]: 9 }, consumed: { c: 9 } },
    },
  };
}

/** The same where a series of a process says something else. */
function saying(process: string, name: string, value: number, labels: Record<string, string> = {}): History {
  const history = sound();
  const isMeant = (series: Series): boolean => series.name === `outbox_${name}` && Object.entries(labels).every(([label, text]) => series.labels[label] === text);
  const processes = history.figures.processes.map((each) => ({ ...each, series: each.series.map((series) => (each.process.startsWith(process) && isMeant(series) ? { ...series, value } : series)) }));
  return { ...history, figures: { ...history.figures, processes } };
}
const tables = (change: Partial<TableFigures>): History => {
  const history = sound();
  return { ...history, figures: { ...history.figures, tables: { ...history.figures.tables, ...change } } };
};

describe('the checker of figures', () => {
  it('finds nothing wrong where they agree', () => {
    expect(wrongFigures(sound())).toEqual([]);
  });

  it.each([
    ['a gauge that is not the table', saying('relay', 'messages_dead', 2)],
    ['a row that no gauge knows', tables({ pending: { other: 1 } })],
    ['tables that could not be read', saying('consumer', 'database_up', 0)],
    ['messages in no state', saying('relay', 'messages_lost', 1)],
    ['fewer emitted than committed', saying('writer', 'messages_emitted_total', 9)],
    ['more emitted than committed', saying('writer', 'messages_emitted_total', 11)],
    ['more published than sent', saying('relay', 'messages_published_total', 10)],
    ['fewer published than sent', saying('relay', 'messages_published_total', 7)],
    ['sent ones that the log does not know', tables({ sent: { [T]: 8 } })],
    ['a copy that no counter explains', saying('relay', 'messages_unanswered_total', 0)],
    ['refusals that led to nothing', saying('relay', 'messages_retried_total', 3)],
    ['more parked than dead', { ...tables({ dead: {} }), parked: [] }],
    ['more handled than recorded', saying('consumer', 'consumer_messages_total', 10, { outcome: 'handled' })],
    ['records that no counter explains', saying('consumer', 'consumer_failures_total', 0)],
  ])('sees %s', (_, history) => {
    expect(wrongFigures(history)).not.toEqual([]);
  });

  it('allows a process that was killed what it had in hand, and a COMMIT without an answer', () => {
    const killed = saying('relay', 'messages_published_total', 0);
    expect(wrongFigures(killed)).not.toEqual([]);
    expect(wrongFigures({ ...killed, figures: { ...(killed.figures as Figures), kills: { relay: 1, consumer: 0 } } })).toEqual([]);
    expect(wrongFigures({ ...saying('writer', 'messages_emitted_total', 9), faults: [{ kind: 'all-sessions', target: '', at: 0, forMs: 0 }] })).toEqual([]);
  });
});
