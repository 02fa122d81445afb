/** One thing that can happen next. */
export interface Step<S> {
  readonly name: string;
  readonly state: S;
}

export interface Model<S> {
  readonly start: S;
  /** Everything that can happen in a state. */
  steps(state: S): readonly Step<S>[];
  /** What is wrong with a state, if anything is. `final`: nothing can happen any more. */
  broken(state: S, final: boolean): string | undefined;
}

export interface Exploration {
  readonly states: number;
  /** The shortest way to a state with a broken promise. */
  readonly counterExample: { readonly promise: string; readonly steps: readonly string[] } | undefined;
}

interface Visit<S> {
  readonly state: S;
  readonly cameBy: string;
  readonly from: Visit<S> | undefined;
}

/** Visits every state that can be reached, nearest first, and stops at the first that breaks a promise. */
export function explore<S>(model: Model<S>): Exploration {
  const seen = new Set<string>([JSON.stringify(model.start)]);
  let layer: Visit<S>[] = [{ state: model.start, cameBy: '', from: undefined }];
  while (layer.length > 0) {
    const next: Visit<S>[] = [];
    for (const visit of layer) {
      const steps = model.steps(visit.state);
      const promise = model.broken(visit.state, steps.length === 0);
      if (promise !== undefined) return { states: seen.size, counterExample: { promise, steps: wayTo(visit) } };
      for (const { name, state } of steps) {
        const key = JSON.stringify(state);
        if (seen.has(key)) continue;
        seen.add(key);
        next.push({ state, cameBy: name, from: visit });
      }
    }
    layer = next;
  }
  return { states: seen.size, counterExample: undefined };
}

function wayTo<S>(visit: Visit<S>): string[] {
  const way: string[] = [];
  for (let at: Visit<S> | undefined = visit; at?.from; at = at.from) way.unshift(at.cameBy);
  return way;
}
