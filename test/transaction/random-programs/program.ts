import type { Propagation } from 'nestjs-transactional-outbox';

/** One of several equal ways to insert a row. */
export type Way = 'insert' | 'save' | 'builder' | 'query';

export type Step =
  /** A row and its event. */
  | { readonly kind: 'write'; readonly id: number; readonly way: Way; readonly emitFirst: boolean }
  /** A row without an event. */
  | { readonly kind: 'row'; readonly id: number; readonly way: Way }
  /** An event without a row. */
  | { readonly kind: 'emit'; readonly id: number }
  /** A hook for each outcome. */
  | { readonly kind: 'hooks'; readonly id: number }
  /** Fails at a row that is there already. */
  | { readonly kind: 'duplicate'; readonly way: Way }
  | { readonly kind: 'throw' }
  /** Lets others run: so many microtasks, or a turn of the event loop. */
  | { readonly kind: 'pause'; readonly ticks: number | 'turn' }
  | { readonly kind: 'sql'; readonly command: SqlCommand; readonly name: string }
  | { readonly kind: 'call'; readonly propagation: Propagation; readonly body: readonly Step[] }
  /** `dataSource.transaction` inside a transaction. */
  | { readonly kind: 'transaction'; readonly body: readonly Step[] }
  /** `dataSource.transaction` outside one, or `manager.transaction` in that: its work is given the manager. */
  | { readonly kind: 'explicit'; readonly body: readonly Step[] }
  | { readonly kind: 'catch'; readonly body: readonly Step[] }
  | { readonly kind: 'parallel'; readonly settled: boolean; readonly branches: readonly (readonly Step[])[] }
  /** Work that nobody waits for. */
  | { readonly kind: 'leave'; readonly body: readonly Step[] };

export type SqlCommand = 'SAVEPOINT' | 'ROLLBACK TO SAVEPOINT' | 'RELEASE SAVEPOINT' | 'COMMIT' | 'ROLLBACK';

export interface Program {
  readonly seed: number;
  /** Without parallel parts the model says all that must come out. */
  readonly isSequential: boolean;
  readonly body: readonly Step[];
}

/** The program as source text. */
export function print(steps: readonly Step[], indent = ''): string {
  return steps.map((step) => `${indent}${printStep(step, indent)}`).join('\n');
}

function printStep(step: Step, indent: string): string {
  const block = (head: string, body: readonly Step[]): string => `${head} {\n${print(body, `${indent}  `)}\n${indent}}`;
  switch (step.kind) {
    case 'write':
      return step.emitFirst ? `emit ${step.id}; ${step.way} row ${step.id}` : `${step.way} row ${step.id}; emit ${step.id}`;
    case 'row':
      return `${step.way} row ${step.id}`;
    case 'emit':
    case 'hooks':
      return `${step.kind} ${step.id}`;
    case 'duplicate':
      return `${step.way} duplicate`;
    case 'throw':
      return 'throw';
    case 'pause':
      return `pause ${step.ticks}`;
    case 'sql':
      return `${step.command} ${step.name}`.trim();
    case 'call':
      return block(step.propagation, step.body);
    case 'parallel':
      return block(
        step.settled ? 'allSettled' : 'all',
        step.branches.map((branch) => ({ kind: 'branch', body: branch }) as never),
      );
    case 'transaction':
    case 'explicit':
    case 'catch':
    case 'leave':
      return block(step.kind, step.body);
    default:
      // A branch of a parallel step.
      return block('branch', (step as { body: readonly Step[] }).body);
  }
}

/** Each program with one step less, the big cuts first. */
export function* smaller(steps: readonly Step[]): Generator<readonly Step[]> {
  for (let at = 0; at < steps.length; at++) yield steps.toSpliced(at, 1);
  for (let at = 0; at < steps.length; at++) {
    const step = steps[at];
    if (!step) continue;
    if ('body' in step) {
      yield steps.toSpliced(at, 1, ...step.body);
      for (const body of smaller(step.body)) yield steps.toSpliced(at, 1, { ...step, body });
    }
    if (step.kind === 'parallel') {
      for (let index = 0; index < step.branches.length; index++) {
        yield steps.toSpliced(at, 1, { ...step, branches: step.branches.toSpliced(index, 1) });
        for (const branch of smaller(step.branches[index] ?? [])) {
          yield steps.toSpliced(at, 1, { ...step, branches: step.branches.toSpliced(index, 1, branch) });
        }
      }
    }
  }
}

/** Whether every step stands where it means something: taking steps away may bring others out of their transaction. */
export function isWellPlaced(steps: readonly Step[], place: 'outside' | 'inside' | 'explicit' = 'outside'): boolean {
  return steps.every((step) => {
    switch (step.kind) {
      case 'sql':
        // After a COMMIT by hand inside a savepoint, TypeORM and the database no longer agree on where they are.
        return place !== 'outside';
      case 'transaction':
      case 'leave':
        return place === 'inside' && isWellPlaced(step.body, place) && (step.kind === 'leave' || !endsByHand(step.body));
      case 'explicit':
        return place !== 'inside' && isWellPlaced(step.body, 'explicit') && !endsByHand(step.body);
      case 'call': {
        const { propagation } = step;
        if (place === 'explicit') return false;
        if (propagation === 'NOT_SUPPORTED' || propagation === 'NEVER') return isWellPlaced(step.body, 'outside');
        if (propagation === 'NESTED' && place === 'inside' && endsByHand(step.body)) return false;
        const begins = propagation === 'REQUIRED' || propagation === 'NESTED' || propagation === 'REQUIRES_NEW';
        return isWellPlaced(step.body, begins ? 'inside' : place);
      }
      case 'catch':
        return isWellPlaced(step.body, place);
      case 'parallel':
        return step.branches.every((branch) => isWellPlaced(branch, place));
      case 'hooks':
        return place !== 'explicit';
      default:
        return true;
    }
  });
}

function endsByHand(steps: readonly Step[]): boolean {
  return steps.some(
    (step) =>
      (step.kind === 'sql' && (step.command === 'COMMIT' || step.command === 'ROLLBACK')) ||
      ('body' in step && endsByHand(step.body)),
  );
}
