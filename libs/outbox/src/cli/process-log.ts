import type { LoggerService } from '@nestjs/common';
import { oneLine, toJson } from './print';

/** The log of a process that runs for long: a line for each entry, with its time; with `json` an object a line. */
export function processLog(write: (line: string) => void, json: boolean): LoggerService {
  const at =
    (level: string) =>
    (message: unknown, ...more: unknown[]): void => {
      const context = more.at(-1);
      const text = message instanceof Error ? message.message : message;
      const time = new Date().toISOString();
      if (json) return write(toJson({ time, level, ...(typeof context === 'string' ? { context } : {}), message: text }));
      const said = oneLine(typeof text === 'string' ? text : JSON.stringify(text));
      write(`${time} ${level.padEnd(5)} ${typeof context === 'string' ? `[${context}] ` : ''}${said}`);
    };
  return { log: at('info'), warn: at('warn'), error: at('error'), fatal: at('error'), debug: () => undefined, verbose: () => undefined };
}
