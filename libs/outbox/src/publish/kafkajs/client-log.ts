import type { LoggerService } from '@nestjs/common';
import { type logCreator, logLevel } from 'kafkajs';

/** Milliseconds in which the same line is written once. */
const QUIET_TIME = 60_000;
const MOST_LINES_REMEMBERED = 100;

/** Said of each idempotent producer whose retries are bounded; ours are, and it is thrown away when they fail. */
const NOT_FOR_US = /^Limiting retries for the idempotent producer/;

/**
 * Where the lines of the client go. It calls each failed try an error and writes several lines for one, many times a
 * second while a broker is away; whether it matters is for the outcomes to say, so here they are warnings, each once a
 * minute.
 */
export class ClientLog {
  private readonly lastWritten = new Map<string, number>();

  constructor(private readonly logger: Pick<LoggerService, 'warn' | 'debug'>) {}

  /** @param muted while it says true, nothing is written */
  creator(muted: () => boolean): logCreator {
    return () =>
      ({ level, namespace, log }) => {
        if (muted() || NOT_FOR_US.test(log.message)) return;
        const text = typeof log['error'] === 'string' ? `${log.message}: ${log['error']}` : log.message;
        const broker = typeof log['broker'] === 'string' ? ` (${log['broker']})` : '';
        if (level > logLevel.WARN) this.logger.debug?.(`${namespace}: ${text}${broker}`);
        else this.warn(`${text}${broker}`);
      };
  }

  warn(line: string): void {
    const now = performance.now();
    const last = this.lastWritten.get(line);
    if (last !== undefined && now - last < QUIET_TIME) return;
    if (this.lastWritten.size >= MOST_LINES_REMEMBERED) this.lastWritten.clear();
    this.lastWritten.set(line, now);
    this.logger.warn(line);
  }
}
