import type { CommittedEvent, TopicRecord } from './history.js';

/**
 * Copies of a message that land behind newer messages of their key and stay there. A relay that sends a batch again
 * because it never learned its fate sends it to the end, so the newest message is the last one again; a late copy is
 * one that is not followed by every newer message that was there before it. A compacted topic would keep it.
 */
export function lateCopies(committed: readonly CommittedEvent[], records: readonly TopicRecord[]): string[] {
  const keys = new Map(committed.map((event) => [event.eventId, event.key]));
  const byKey = new Map<string, TopicRecord[]>();
  for (const record of records) {
    const key = record.eventId === null ? null : keys.get(record.eventId);
    if (key === null || key === undefined) continue;
    const name = `${record.topic}/${record.partition}/${key}`;
    const ofKey = byKey.get(name);
    if (ofKey) ofKey.push(record);
    else byKey.set(name, [record]);
  }
  return [...byKey.values()].flatMap(lateOfKey);
}

function lateOfKey(records: readonly TopicRecord[]): string[] {
  /** Order of first appearance, and the last place where the message stands. */
  const firsts: string[] = [];
  const age = new Map<string, number>();
  const last = new Map<string, number>();
  records.forEach(({ eventId }, position) => {
    const id = eventId ?? '';
    if (!age.has(id)) age.set(id, firsts.push(id) - 1);
    last.set(id, position);
  });

  const findings: string[] = [];
  let known = 0;
  records.forEach((record, position) => {
    const id = record.eventId ?? '';
    const own = age.get(id) ?? 0;
    if (own === known) {
      known++;
      return;
    }
    // A copy. All messages from the next younger to the newest of that moment must come again after it.
    const stale = firsts.slice(own + 1, known).find((younger) => (last.get(younger) ?? 0) < position);
    if (stale !== undefined) {
      findings.push(
        `late copy: event ${id} again at ${record.topic}[${record.partition}]@${record.offset}, behind event ${stale}`,
      );
    }
  });
  return findings;
}
