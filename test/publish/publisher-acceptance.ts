import { publisherAcceptance, type PublisherSetup } from 'nestjs-transactional-outbox/publisher-acceptance';
import { afterAll, beforeAll, describe, it } from 'vitest';

export { recordFor, summaryOf, untilAcknowledged, valuesByKey } from '../../libs/outbox/src/publish/acceptance/bench';

/** A broker that is killed may register again only when its session has run out, and on a busy machine starts slowly. */
const TIMEOUT = 180_000;

export interface Lifetime {
  begin(): Promise<void>;
  end(): Promise<void>;
}

/** The acceptance suite for users, run here on our own publishers. */
export function describePublisher(name: string, setup: PublisherSetup, lifetime?: Lifetime): void {
  describe(name, { timeout: TIMEOUT }, () => {
    beforeAll(() => lifetime?.begin());
    afterAll(() => lifetime?.end());
    for (const { name: what, skipped, run } of publisherAcceptance(setup)) {
      it(what, async ({ skip }) => {
        if (skipped !== null) skip(skipped);
        await run();
      });
    }
  });
}
