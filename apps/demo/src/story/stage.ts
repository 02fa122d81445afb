import type { Checklist, Figure } from '../checklist.js';
import type { InMemoryShop } from '../in-memory-shop.js';
import type { Narrator } from '../narrator.js';
import { waitUntil } from '../wait-until.js';

/** What each chapter of the story works with. */
export class Stage {
  constructor(
    readonly shop: InMemoryShop,
    readonly narrator: Narrator,
    private readonly checklist: Checklist,
  ) {}

  check(claim: string, expected: Figure, seen: Figure): void {
    this.narrator.checked(this.checklist.check(claim, expected, seen));
  }

  /** Until all is sent and handled, events of the inventory included. */
  async settled(): Promise<void> {
    await waitUntil('the outbox is empty', async () => (await this.shop.figures.pending()) === 0);
    await this.shop.broker.idle();
  }
}

/** The end of an id, enough to recognise it by: the beginning of a message id is a time, and alike for all. */
export function short(id: string | undefined): string {
  return id === undefined ? 'none' : `…${id.slice(-8)}`;
}
