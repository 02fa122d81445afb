import { Logger } from '@nestjs/common';
import type { Connection } from '../store/connection';

/** Milliseconds after which the session is asked whether it still listens: a dead network says nothing. */
const RENEWAL = 10_000;
/** Milliseconds until a lost session is opened again. */
const PAUSE = 1000;

export interface CommitListenerHost {
  /** The statement by which a session asks for signals. */
  readonly listen: string;
  open(): Promise<Connection>;
  onCommit(): void;
}

/** Hears of commits in other processes. Polling finds what it misses, so its failures are no trouble of the relay. */
export class CommitListener {
  private readonly logger = new Logger('OutboxRelay');
  private running: Promise<void> | undefined;
  private stopping = false;
  private isLost = false;
  private resting: (() => void) | undefined;
  private complaint: string | undefined;

  constructor(private readonly host: CommitListenerHost) {}

  start(): void {
    this.stopping = false;
    this.running ??= this.run();
  }

  async stop(): Promise<void> {
    this.stopping = true;
    this.resting?.();
    await this.running;
    this.running = undefined;
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      await this.listen().catch((error: unknown) => this.complain(error));
      if (!this.stopping) await this.rest(PAUSE);
    }
  }

  /** Returns when the session is lost, or nobody wants to hear any more. */
  private async listen(): Promise<void> {
    const connection = await this.host.open();
    try {
      this.isLost = false;
      connection.onLost(() => {
        this.isLost = true;
        this.resting?.();
      });
      connection.onSignal(() => this.host.onCommit());
      await connection.query(this.host.listen);
      this.complaint = undefined;
      // For what was committed before.
      this.host.onCommit();
      while (!this.stopping && !this.isLost) {
        await this.rest(RENEWAL);
        if (!this.stopping && !this.isLost) await connection.query(this.host.listen);
      }
    } finally {
      await connection.close();
    }
  }

  private complain(error: unknown): void {
    const complaint = error instanceof Error ? error.message : String(error);
    if (complaint !== this.complaint && !this.stopping) {
      this.logger.warn(`Cannot hear of commits in other processes (${complaint}): until then polling finds their messages.`);
    }
    this.complaint = complaint;
  }

  private async rest(milliseconds: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      timer.unref();
      this.resting = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.resting = undefined;
  }
}
