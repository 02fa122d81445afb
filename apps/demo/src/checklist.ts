export type Figure = number | string | boolean;

export interface Check {
  readonly claim: string;
  readonly expected: Figure;
  readonly seen: Figure;
  readonly holds: boolean;
}

/** What a demo claims, beside what it saw. */
export class Checklist {
  readonly checks: Check[] = [];

  check(claim: string, expected: Figure, seen: Figure): Check {
    const check = { claim, expected, seen, holds: Object.is(expected, seen) };
    this.checks.push(check);
    return check;
  }

  get failures(): readonly Check[] {
    return this.checks.filter((check) => !check.holds);
  }

  /** A demo that checked nothing has shown nothing. */
  get allHold(): boolean {
    return this.checks.length > 0 && this.failures.length === 0;
  }
}
