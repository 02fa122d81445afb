import type { ClaimSessions } from '../relay/claim-sessions';
import type { Connection } from '../store/connection';

/** Connections of an operator's own, beside the app's pool and outside of its transactions; opened when first needed. */
export class OperatorConnections {
  private sessions: ClaimSessions | undefined;

  constructor(
    private readonly open: () => ClaimSessions,
    /** Called when something may have been done. */
    private readonly used: () => void,
  ) {}

  async use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    this.sessions ??= this.open();
    const connection = await this.sessions.openConnection();
    // An act may look for its next messages, or have another connection work, for longer than the server waits.
    connection.keepAwake();
    try {
      return await work(connection);
    } finally {
      await connection.close();
      this.used();
    }
  }

  async close(): Promise<void> {
    await this.sessions?.close();
    this.sessions = undefined;
  }
}
