import type { Sql } from './dialect';

/** Milliseconds between two signals: each is a transaction, and a relay that is at work needs none. */
const PAUSE = 5;

/**
 * Tells other processes that messages were committed. Never inside a business transaction: there NOTIFY makes commits
 * wait for one another. However many commits there are, one signal is on its way, and one more follows it.
 */
export class CommitSignal {
  private sending = false;
  private wanted = false;

  constructor(
    private readonly sql: Sql,
    private readonly statement: string,
  ) {}

  send(): void {
    this.wanted = true;
    if (!this.sending) void this.sendWanted();
  }

  /** Never rejects: relays look at every poll interval anyway. */
  private async sendWanted(): Promise<void> {
    this.sending = true;
    while (this.wanted) {
      this.wanted = false;
      await this.sql.query(this.statement).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
    this.sending = false;
  }
}
