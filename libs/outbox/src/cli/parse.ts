import { InvalidArgumentError } from 'commander';
import type { LetterPlace } from '../operate/dead-letters';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `7d`, `12h`, `90s`, or `never`. */
export function duration(text: string): number | false {
  if (text === 'never') return false;
  const [, count, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(text) ?? [];
  const factor = unit === undefined ? undefined : UNITS[unit];
  if (factor === undefined) throw new InvalidArgumentError('Give a time such as 7d, 12h, 30m, 90s, or never.');
  return Number(count) * factor;
}

/** The same, where there is no never. */
export function milliseconds(text: string): number {
  const time = duration(text);
  if (time === false) throw new InvalidArgumentError('Give a time such as 500ms, 3s or 1m.');
  return time;
}

export function port(text: string): number {
  const number = wholeNumber(text);
  if (number > 65_535) throw new InvalidArgumentError('Give a port from 0 to 65535.');
  return number;
}

export function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(Number(text))) throw new InvalidArgumentError('Give a whole number.');
  return Number(text);
}

export function time(text: string): Date {
  const [, day, clock = ''] = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/.exec(text) ?? [];
  const date = new Date(`${day}${clock}`);
  // Date takes the 31st of February for the 3rd of March.
  const isDay = !Number.isNaN(date.getTime()) && new Date(`${day}`).toISOString().startsWith(`${day}`);
  if (!isDay) throw new InvalidArgumentError('Give a time such as 2026-01-31 (in UTC) or 2026-01-31T12:00:00Z, with its zone.');
  return date;
}

export function list(text: string): string[] {
  return text.split(',').map((part) => part.trim()).filter((part) => part !== '');
}

/** `partition@offset`, as `dead-letters list` prints it. */
export function letterPlace(text: string): LetterPlace {
  const [, partition, offset] = /^(\d+)@(\d+)$/.exec(text) ?? [];
  if (partition === undefined || offset === undefined) throw new InvalidArgumentError('Give places such as 0@15.');
  return { partition: Number(partition), offset };
}

/** Options without those that were not given. */
export function given<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
