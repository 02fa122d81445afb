import type { CommittedEvent, TopicRecord } from './history.js';

/** First appearances on the topics, key by key, in the order of the partition. */
interface Appearance {
  readonly event: CommittedEvent;
  readonly record: TopicRecord;
}

/**
 * Every (topic, key) whose events first appear in another order than that of their commits. Where the place in commit
 * order is known it must never go back; where only the time of the commit is known, no event may appear behind one
 * whose commit began after its own had ended.
 */
export function orderViolations(committed: readonly CommittedEvent[], records: readonly TopicRecord[]): string[] {
  const findings: string[] = [];
  for (const [name, appearances] of firstAppearances(committed, records)) {
    const [first] = appearances;
    let newest: Appearance | undefined;
    let lastToBegin: Appearance | undefined;
    for (const one of appearances) {
      // Partitions have no common order.
      if (one.record.partition !== first?.record.partition) {
        findings.push(`order: ${name} is on partitions ${first?.record.partition} and ${one.record.partition}`);
        continue;
      }
      const { seq, commit } = one.event;
      if (seq !== null) {
        if (newest && seq < (newest.event.seq ?? 0)) findings.push(behind(name, one, newest));
        else newest = one;
      }
      if (commit) {
        if (lastToBegin?.event.commit && commit.ended < lastToBegin.event.commit.begun) {
          findings.push(behind(name, one, lastToBegin));
        }
        if (!lastToBegin?.event.commit || commit.begun > lastToBegin.event.commit.begun) lastToBegin = one;
      }
    }
  }
  return findings;
}

function firstAppearances(
  committed: readonly CommittedEvent[],
  records: readonly TopicRecord[],
): Map<string, Appearance[]> {
  const events = new Map(committed.map((event) => [event.eventId, event]));
  const seen = new Set<string>();
  const byKey = new Map<string, Appearance[]>();
  for (const record of records) {
    const event = record.eventId === null ? undefined : events.get(record.eventId);
    if (!event || event.key === null || record.topic !== event.topic || seen.has(event.eventId)) continue;
    seen.add(event.eventId);
    const name = `${event.topic}/${event.key}`;
    const appearances = byKey.get(name);
    if (appearances) appearances.push({ event, record });
    else byKey.set(name, [{ event, record }]);
  }
  return byKey;
}

function behind(name: string, late: Appearance, early: Appearance): string {
  const at = ({ event, record }: Appearance): string =>
    `event ${event.eventId}${event.seq === null ? '' : ` (place ${event.seq})`} @${record.offset}`;
  return `order: on ${name}, ${at(late)} first appears behind ${at(early)}, which committed later`;
}
