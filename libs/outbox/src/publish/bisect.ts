import { behind, orderOf, unknown } from './outcome';
import type { PublishFailure, PublishOutcome, PublishRecord } from './publisher';

/**
 * What one try says of one record. `refused-together`: the broker refused the unit (Kafka: the records of one
 * partition) that the record was sent in, none of the unit is stored, and any of its records may be the reason.
 */
export type TryOutcome =
  | PublishOutcome
  | { readonly status: 'refused-together'; readonly unit: string; readonly failure: PublishFailure };

/** Sends the records once, in their order, and returns one outcome for each. */
export type TrySend = (records: readonly PublishRecord[]) => Promise<readonly TryOutcome[]>;

export interface BisectOptions {
  /** Runs of indexes into the records, sent one after the other. Default: all records as one run. */
  readonly chunks?: readonly (readonly number[])[];
  /** Whether the time is over: what was not tried until then is `unknown`. */
  readonly expired: () => boolean;
}

/**
 * Publishes records, and halves what was refused together until each reason stands alone. All halves of one round
 * share a request, the earlier halves before the later ones; a later record of a key that failed is sent no more.
 */
export async function publishBisecting(
  records: readonly PublishRecord[],
  trySend: TrySend,
  options: BisectOptions,
): Promise<PublishOutcome[]> {
  const bisection = new Bisection(records, trySend, options.expired);
  for (const chunk of options.chunks ?? [records.map((_, index) => index)]) await bisection.resolve(chunk);
  return bisection.outcomes;
}

class Bisection {
  readonly outcomes: PublishOutcome[];
  private readonly failed = new Map<string, 'refused' | 'unknown'>();

  constructor(
    private readonly records: readonly PublishRecord[],
    private readonly trySend: TrySend,
    private readonly expired: () => boolean,
  ) {
    this.outcomes = records.map(() => unknown('NOT_SENT', 'the record was never tried'));
  }

  async resolve(indexes: readonly number[]): Promise<void> {
    const going = indexes.filter((index) => !this.isBehind(index));
    if (going.length === 0) return;
    if (this.expired()) {
      for (const index of going) this.settle(index, unknown('TIMEOUT', 'the time was over before it could be sent'));
      return;
    }
    const tried = await this.trySend(going.map((index) => this.record(index)));
    const { earlier, later } = this.sort(going, tried);
    await this.resolve(earlier);
    await this.resolve(later);
  }

  /** Settles what is certain, and halves each unit that was refused as a whole. */
  private sort(going: readonly number[], tried: readonly TryOutcome[]): { earlier: number[]; later: number[] } {
    const units = new Map<string, number[]>();
    const failures = new Map<string, PublishFailure>();
    going.forEach((index, position) => {
      const outcome = tried[position] ?? unknown('NO_ANSWER', 'the publisher gave no outcome for the record');
      if (outcome.status !== 'refused-together') return this.settle(index, outcome);
      units.set(outcome.unit, [...(units.get(outcome.unit) ?? []), index]);
      failures.set(outcome.unit, outcome.failure);
    });
    const earlier: number[] = [];
    const later: number[] = [];
    for (const [unit, members] of units) {
      const [alone] = members;
      const failure = failures.get(unit);
      if (members.length === 1 && alone !== undefined && failure !== undefined) {
        this.settle(alone, { status: 'refused', failure });
      } else {
        const half = Math.ceil(members.length / 2);
        earlier.push(...members.slice(0, half));
        later.push(...members.slice(half));
      }
    }
    return { earlier: earlier.sort((a, b) => a - b), later: later.sort((a, b) => a - b) };
  }

  private settle(index: number, outcome: PublishOutcome): void {
    if (outcome.status === 'acknowledged') {
      this.outcomes[index] = outcome;
      return;
    }
    const order = orderOf(this.record(index));
    // Of several refused records of one key only the first is at fault; the others were right to wait.
    const earlier = order === null || outcome.status !== 'refused' ? undefined : this.failed.get(order);
    this.outcomes[index] = earlier === undefined ? outcome : behind(earlier);
    if (order !== null && !this.failed.has(order)) this.failed.set(order, outcome.status);
  }

  private isBehind(index: number): boolean {
    if (this.failed.size === 0) return false;
    const order = orderOf(this.record(index));
    const failed = order === null ? undefined : this.failed.get(order);
    if (failed === undefined) return false;
    this.outcomes[index] = behind(failed);
    return true;
  }

  private record(index: number): PublishRecord {
    const record = this.records[index];
    if (record === undefined) throw new RangeError(`no record at ${index}`);
    return record;
  }
}
