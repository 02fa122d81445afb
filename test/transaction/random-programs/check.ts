import { type Done, type Region, type Trace } from './interpret';
import type { Prediction } from './model';
import { type Program, type Step } from './program';

/** What a program left behind, its own ids, each list in order of the table. */
export interface Found {
  readonly rows: readonly number[];
  readonly events: readonly number[];
}

/** What does not fit, in words; empty when all does. */
export function compare(program: Program, prediction: Prediction | undefined, trace: Trace, found: Found): string[] {
  const problems: string[] = [];
  if (prediction) {
    expectSame(problems, 'rows', prediction.rows.toSorted(ascending), found.rows);
    // One event after the other, in the order of the commits.
    expectSame(problems, 'events', prediction.events, found.events);
    expectSame(problems, 'hooks', prediction.hooks, trace.hooks);
    if (!outcomeFits(prediction.outcome, trace.outcome)) {
      problems.push(`outcome: expected ${prediction.outcome}, found ${trace.outcome} (${String(trace.error)})`);
    }
  }
  if (!has(program.body, 'sql') && !(has(program.body, 'explicit') && has(program.body, 'duplicate'))) {
    const isSure = (id: number): boolean => !trace.unsure.has(id);
    expectSame(problems, 'rows by trace', surviving(trace.done, 'row'), found.rows.filter(isSure));
    expectSame(problems, 'events by trace', surviving(trace.done, 'event'), found.events.toSorted(ascending));
    expectSame(problems, 'hooks by trace', hooksOf(trace.done), trace.hooks.toSorted());
  }
  if (!/^(ok|OWN|QUERY|OUTBOX_[A-Z_]+)$/.test(trace.outcome)) problems.push(`outcome: ${trace.outcome}`);
  return problems;
}

function outcomeFits(expected: string, found: string): boolean {
  return expected === 'ANY' ? found !== 'ok' : expected === found;
}

/** What was done stands exactly when every savepoint around it, and the transaction, ended well. */
function surviving(done: readonly Done[], what: Done['what']): number[] {
  return done.flatMap((item) => (item.what === what && stands(item.region) ? [item.id] : [])).toSorted(ascending);
}

function stands(region: Region | undefined): boolean {
  if (!region) return true;
  if (region.outcome !== 'ok') return false;
  return region.kind === 'transaction' || stands(region.around);
}

function hooksOf(done: readonly Done[]): string[] {
  return done
    .flatMap(({ what, id, region }) => {
      if (what !== 'hooks') return [];
      if (stands(region)) return [`committed ${id}`];
      return transactionOf(region)?.outcome === 'ok' ? [] : [`rolled back ${id}`];
    })
    .toSorted();
}

function transactionOf(region: Region | undefined): Region | undefined {
  return region?.kind === 'savepoint' ? transactionOf(region.around) : region;
}

function has(steps: readonly Step[], kind: Step['kind']): boolean {
  return steps.some(
    (step) =>
      step.kind === kind ||
      ('body' in step && has(step.body, kind)) ||
      (step.kind === 'parallel' && step.branches.some((branch) => has(branch, kind))),
  );
}

function expectSame(problems: string[], what: string, expected: readonly unknown[], found: readonly unknown[]): void {
  if (JSON.stringify(expected) !== JSON.stringify(found)) {
    problems.push(`${what}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`);
  }
}

function ascending(a: number, b: number): number {
  return a - b;
}
