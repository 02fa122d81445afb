import type { LoggerService } from '@nestjs/common';
import { type logCreator, logLevel } from 'kafkajs';
import { QuietLog } from '../kafka/quiet-log';

/** Said of each idempotent producer whose retries are bounded; ours are, and it is thrown away when they fail. */
const NOT_FOR_US = /^Limiting retries for the idempotent producer/;

/**
 * Where the lines of kafkajs go. It calls each failed try an error and writes several lines for one; whether it matters
 * is for the outcomes to say, so here they are warnings.
 */
export class ClientLog extends QuietLog {
  constructor(private readonly lines: Pick<LoggerService, 'warn' | 'debug'>) {
    super(lines);
  }

  /** @param muted while it says true, nothing is written */
  creator(muted: () => boolean): logCreator {
    return () =>
      ({ level, namespace, log }) => {
        if (muted() || NOT_FOR_US.test(log.message)) return;
        const text = typeof log['error'] === 'string' ? `${log.message}: ${log['error']}` : log.message;
        const broker = typeof log['broker'] === 'string' ? ` (${log['broker']})` : '';
        if (level > logLevel.WARN) this.lines.debug?.(`${namespace}: ${text}${broker}`);
        else this.warn(`${text}${broker}`);
      };
  }
}
