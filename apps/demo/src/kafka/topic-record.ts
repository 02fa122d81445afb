/** A record as it lies on a topic. */
export interface TopicRecord {
  readonly id: string;
  readonly key: string;
  readonly value: string;
  readonly headers: string;
}

/** Each message once, in the order in which its partition has it. */
export function firstAppearances(records: readonly TopicRecord[]): TopicRecord[] {
  const seen = new Set<string>();
  return records.filter(({ id }) => !seen.has(id) && seen.add(id));
}

/** Repeats that are not, byte by byte, what was first under their id. */
export function differingRepeats(records: readonly TopicRecord[]): number {
  const firsts = new Map(firstAppearances(records).map((record) => [record.id, record]));
  const same = (a: TopicRecord, b: TopicRecord | undefined): boolean =>
    a.key === b?.key && a.value === b.value && a.headers === b.headers;
  return records.filter((record) => !same(record, firsts.get(record.id))).length;
}

/**
 * Each stock event says what was left of the product, so the events of a product form a chain: what is left now and
 * what was taken make up what was left before. An event that is missing, swapped or invented breaks it.
 */
export function stepsOutOfOrder(steps: readonly TopicRecord[], delivered: Readonly<Record<string, number>>): number {
  const left = new Map(Object.entries(delivered));
  return steps.filter(({ key, value }) => {
    const { quantity, available } = JSON.parse(value) as { quantity: number; available: number };
    const before = left.get(key);
    left.set(key, available);
    return before !== available + quantity;
  }).length;
}
