import { wrongFigures } from './figures.js';
import { lateCopies } from './late-copies.js';
import type { CommittedEvent, History, TopicRecord } from './history.js';
import { orderViolations } from './order.js';

/** The last line of a chaos run. */
export interface Verdict {
  readonly faults: number;
  readonly committed: number;
  readonly published: number;
  readonly parked: number;
  readonly lost: number;
  readonly invented: number;
  readonly orderViolations: number;
  readonly lateCopies: number;
  readonly duplicates: number;
  readonly duplicatesPerFault: number;
  readonly effectsWrong: number;
  /** Metrics that do not agree with the tables and the topics. */
  readonly figuresWrong: number;
}

export interface Checked {
  readonly verdict: Verdict;
  /** One sentence for each broken promise, for people. */
  readonly findings: readonly string[];
}

/** Whether all promises were kept. Duplicates and late copies are counted, not forbidden. */
export function isSound(verdict: Verdict): boolean {
  return verdict.lost + verdict.invented + verdict.orderViolations + verdict.effectsWrong + verdict.figuresWrong === 0;
}

/** Judges a history. Knows nothing of how the library works. */
export function check(history: History): Checked {
  const committed = new Map(history.committed.map((event) => [event.eventId, event]));
  const parked = new Set(history.parked);
  const copies = copiesByEvent(history.records);
  const published = new Set([...copies.keys()].filter((id) => committed.has(id)));

  const lost = history.committed
    .filter(({ eventId }) => !published.has(eventId) && !parked.has(eventId))
    .map((event) => `lost: ${describe(event)} committed and is neither published nor parked`);
  const invented = inventions(history, committed, copies);
  const disorder = orderViolations(history.committed, history.records);
  const late = lateCopies(history.committed, history.records);
  const effects = wrongEffects(history, committed, published);
  const figures = wrongFigures(history);
  const duplicates = [...copies.values()].reduce((sum, records) => sum + records.length - 1, 0);
  const faults = history.faults.length;

  return {
    verdict: {
      faults,
      committed: committed.size,
      published: published.size,
      parked: [...parked].filter((id) => committed.has(id)).length,
      lost: lost.length,
      invented: invented.length,
      orderViolations: disorder.length,
      lateCopies: late.length,
      duplicates,
      duplicatesPerFault: faults === 0 ? duplicates : Math.round((duplicates / faults) * 100) / 100,
      effectsWrong: effects.length,
      figuresWrong: figures.length,
    },
    findings: [...lost, ...invented, ...disorder, ...effects, ...figures, ...late],
  };
}

function copiesByEvent(records: readonly TopicRecord[]): Map<string, TopicRecord[]> {
  const copies = new Map<string, TopicRecord[]>();
  for (const record of records) {
    if (record.eventId === null) continue;
    const ofEvent = copies.get(record.eventId);
    if (ofEvent) ofEvent.push(record);
    else copies.set(record.eventId, [record]);
  }
  return copies;
}

/** What is on a topic, or parked, and was never committed in this form. */
function inventions(
  { records, parked, rolledBack }: History,
  committed: ReadonlyMap<string, CommittedEvent>,
  copies: ReadonlyMap<string, readonly TopicRecord[]>,
): string[] {
  const undone = new Set(rolledBack);
  const why = (id: string): string => (undone.has(id) ? 'was rolled back' : 'was never committed');
  const unreadable = records
    .filter(({ eventId }) => eventId === null)
    .map((record) => `invented: ${place(record)} carries no event`);
  const uncommitted = [...copies.keys()]
    .filter((id) => !committed.has(id))
    .map((id) => `invented: event ${id} ${why(id)} and is published`);
  const parkedOnly = parked.filter((id) => !committed.has(id)).map((id) => `invented: event ${id} ${why(id)} and is parked`);
  return [...unreadable, ...uncommitted, ...parkedOnly, ...changed(committed, copies), ...sharedIds(copies)];
}

/** Copies that differ from each other, or from what was committed. */
function changed(
  committed: ReadonlyMap<string, CommittedEvent>,
  copies: ReadonlyMap<string, readonly TopicRecord[]>,
): string[] {
  const findings: string[] = [];
  for (const [id, records] of copies) {
    const event = committed.get(id);
    const [first] = records;
    if (!event || !first) continue;
    for (const record of records) {
      if (record.topic !== event.topic || record.key !== event.key) {
        findings.push(`invented: ${place(record)} has event ${id} of ${event.topic}/${event.key} under ${record.key}`);
      } else if (record.messageId === null || record.messageId !== first.messageId) {
        findings.push(`invented: ${place(record)} has event ${id} under another message id than ${place(first)}`);
      } else if (record.fingerprint !== first.fingerprint) {
        findings.push(`invented: ${place(record)} has other contents than its copy at ${place(first)}`);
      }
    }
  }
  return findings;
}

/** A message id is one message's: consumers recognise repeats by it. */
function sharedIds(copies: ReadonlyMap<string, readonly TopicRecord[]>): string[] {
  const owners = new Map<string, string>();
  const findings: string[] = [];
  for (const [eventId, [first]] of copies) {
    if (!first || first.messageId === null) continue;
    const owner = owners.get(first.messageId);
    if (owner === undefined) owners.set(first.messageId, eventId);
    else findings.push(`invented: events ${owner} and ${eventId} share the message id ${first.messageId}`);
  }
  return findings;
}

/** Each consumer must have acted once for each published event, and for nothing else. */
function wrongEffects(
  { effects }: History,
  committed: ReadonlyMap<string, CommittedEvent>,
  published: ReadonlySet<string>,
): string[] {
  const findings: string[] = [];
  const byConsumer = new Map<string, Map<string, number>>();
  for (const { consumer, eventId } of effects) {
    const counts = byConsumer.get(consumer) ?? new Map<string, number>();
    byConsumer.set(consumer, counts.set(eventId, (counts.get(eventId) ?? 0) + 1));
  }
  // A consumer that did nothing at all leaves no trace to find it by: then everything is wrong.
  if (byConsumer.size === 0 && published.size > 0) byConsumer.set('any consumer', new Map());
  for (const [consumer, counts] of byConsumer) {
    for (const id of published) {
      const count = counts.get(id) ?? 0;
      if (count !== 1) findings.push(`effect: ${consumer} acted ${count} times for event ${id}`);
    }
    for (const id of counts.keys()) {
      if (published.has(id)) continue;
      findings.push(`effect: ${consumer} acted for event ${id}, ${committed.has(id) ? 'not published' : 'not committed'}`);
    }
  }
  return findings;
}

function describe({ eventId, topic, key, seq }: CommittedEvent): string {
  return `event ${eventId} (${topic}, key ${key ?? 'none'}${seq === null ? '' : `, place ${seq}`})`;
}

function place({ topic, partition, offset }: TopicRecord): string {
  return `${topic}[${partition}]@${offset}`;
}
