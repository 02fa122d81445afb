import { groupBy } from '../../event/group-by';
import { refused, ROUTE_AWAY, unknown } from '../outcome';
import type { PublishOptions, PublishOutcome, Publisher, PublishRecord } from '../publisher';
import type { Road } from './road';

/** Sends each record on the road that takes its topic, all roads at the same time. */
export class RoutedPublisher implements Publisher {
  private publishing = false;

  constructor(private readonly roads: readonly Road[]) {}

  /** One road is enough to begin with. */
  async connect(): Promise<void> {
    try {
      await Promise.any(this.roads.map((road) => road.connect()));
    } catch (error) {
      throw error instanceof AggregateError ? error.errors[0] : error;
    }
  }

  async publish(records: readonly PublishRecord[], options: PublishOptions): Promise<readonly PublishOutcome[]> {
    if (this.publishing) throw new Error('publish was called while another publish was running');
    this.publishing = true;
    try {
      return await this.send(records, options);
    } finally {
      this.publishing = false;
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.roads.map((road) => road.close()));
  }

  private async send(records: readonly PublishRecord[], options: PublishOptions): Promise<PublishOutcome[]> {
    const outcomes: PublishOutcome[] = records.map(({ topic }) => refused('NO_ROUTE', `no route takes the topic ${topic}`));
    const byRoad = groupBy([...records.keys()], (index) => this.roads.find((road) => road.takes(records[index]?.topic ?? '')));
    await Promise.all(
      [...byRoad].map(async ([road, indexes]) => {
        if (road === undefined) return;
        const sent = await road.publish(indexes.flatMap((index) => records[index] ?? []), options);
        indexes.forEach((index, position) => (outcomes[index] = sent[position] ?? unknown('NO_ANSWER', 'the publisher gave no outcome for the record')));
      }),
    );
    this.setAside(byRoad, outcomes);
    return outcomes;
  }

  /** While another road is open, what must wait for one that is away gets out of the way. With all away, nothing moves. */
  private setAside(byRoad: ReadonlyMap<Road | undefined, readonly number[]>, outcomes: PublishOutcome[]): void {
    if (this.roads.every(({ failure }) => failure !== null)) return;
    for (const [road, indexes] of byRoad) {
      const failure = road?.failure;
      if (!failure) continue;
      for (const index of indexes) outcomes[index] = unknown(ROUTE_AWAY, `${failure.code}: ${failure.message}`);
    }
  }
}
