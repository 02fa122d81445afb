import type { Logger } from '@nestjs/common';
import type { RelayStage } from './relay-events';

export interface Trouble {
  readonly stage: RelayStage;
  readonly message: string;
  readonly since: Date;
}

/** What keeps a relay from publishing. Each cause is logged when it begins, and when it is over; not every try. */
export class RelayTrouble {
  private readonly troubles = new Map<RelayStage, { trouble: Trouble; readonly logged: Set<string> }>();

  constructor(private readonly logger: Logger) {}

  get current(): Trouble | null {
    const [first] = this.troubles.values();
    return first?.trouble ?? null;
  }

  begin(stage: RelayStage, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const known = this.troubles.get(stage);
    const trouble = { stage, message, since: known?.trouble.since ?? new Date() };
    const logged = known?.logged ?? new Set();
    if (!logged.has(message)) {
      // The stack tells where in the code only when it is the code's fault.
      const cause = error instanceof Error && error.cause !== undefined ? ` (${String(error.cause)})` : '';
      this.logger.error(`Cannot publish (${stage}): ${message}${cause}. Messages wait, and it is tried again.`);
    }
    logged.add(message);
    this.troubles.set(stage, { trouble, logged });
  }

  over(stage: RelayStage): void {
    const known = this.troubles.get(stage);
    if (!known) return;
    this.troubles.delete(stage);
    this.logger.log(`Publishing again; ${known.trouble.message}, since ${known.trouble.since.toISOString()}, is over.`);
  }
}
