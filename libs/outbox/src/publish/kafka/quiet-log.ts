import type { LoggerService } from '@nestjs/common';

/** Milliseconds in which the same line is written once. */
const QUIET_TIME = 60_000;
const MOST_LINES_REMEMBERED = 100;

/** Warnings, the same one once a minute: while a broker is away, a client would say it many times a second. */
export class QuietLog {
  private readonly lastWritten = new Map<string, number>();

  constructor(private readonly logger: Pick<LoggerService, 'warn'>) {}

  warn(line: string): void {
    const now = performance.now();
    const last = this.lastWritten.get(line);
    if (last !== undefined && now - last < QUIET_TIME) return;
    if (this.lastWritten.size >= MOST_LINES_REMEMBERED) this.lastWritten.clear();
    this.lastWritten.set(line, now);
    this.logger.warn(line);
  }
}
