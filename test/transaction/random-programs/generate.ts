import type { Propagation } from 'nestjs-transactional-outbox';
import { Random } from '../../chaos/src/random';
import type { Program, SqlCommand, Step, Way } from './program';

const WAYS: readonly Way[] = ['insert', 'save', 'builder', 'query'];
const MODES: readonly Propagation[] = [
  'REQUIRED', 'NESTED', 'NESTED', 'NESTED', 'NESTED', 'REQUIRES_NEW', 'MANDATORY', 'SUPPORTS', 'NOT_SUPPORTED', 'NEVER',
];

/** Most ids that one program uses. */
export const MAX_IDS = 80;

/** Most steps of one program, compound ones counted too. */
const MAX_STEPS = 50;

/** What is known, before it runs, of the place that a step stands in. */
interface Place {
  readonly depth: number;
  readonly inTransaction: boolean;
  /** Whether a savepoint of the library or TypeORM is around. */
  readonly inSavepoint: boolean;
  /** Inside `dataSource.transaction` outside the library's transactions. */
  readonly explicit: boolean;
  readonly parallel: boolean;
  /** How many connections the steps may hold at once: more than the pool has would wait for themselves. */
  readonly connections: number;
}

export function generate(seed: number): Program {
  const random = new Random(seed * 7919 + 17);
  const isSequential = seed % 2 === 0;
  const generator = new Generator(random, isSequential);
  const body = generator.steps({
    depth: 0,
    inTransaction: false,
    inSavepoint: false,
    explicit: false,
    parallel: false,
    connections: 4,
  });
  return { seed, isSequential, body };
}

class Generator {
  private ids = 0;
  private count = 0;

  constructor(
    private readonly random: Random,
    private readonly isSequential: boolean,
  ) {}

  steps(place: Place): readonly Step[] {
    const steps: Step[] = [];
    const count = this.random.int(1, place.depth === 0 ? 3 : 4);
    for (let i = 0; i < count && this.count < MAX_STEPS; i++) {
      this.count++;
      steps.push(this.step(place));
    }
    return steps;
  }

  private step(place: Place): Step {
    if (place.explicit) return this.explicitStep(place);
    const { random } = this;
    const deeper = { ...place, depth: place.depth + 1 };
    if (!place.inTransaction && place.depth < 4 && random.chance(0.75)) return this.begin(deeper);
    if (place.depth < 6 && random.chance(0.5)) {
      if (!this.isSequential && random.chance(0.35)) return this.parallel(deeper);
      if (!this.isSequential && place.inTransaction && random.chance(0.15)) {
        return { kind: 'leave', body: [this.pause(), ...this.steps({ ...deeper, connections: 0, parallel: true })] };
      }
      if (random.chance(0.35)) return { kind: 'catch', body: this.steps(deeper) };
      if (place.inTransaction && random.chance(place.parallel ? 0.5 : 0.15)) {
        // What fails and is caught: a savepoint that is undone, and work that goes on.
        const body = [...this.steps({ ...deeper, depth: deeper.depth + 1, inSavepoint: true }), { kind: 'throw' } as const];
        return { kind: 'catch', body: [{ kind: 'call', propagation: 'NESTED', body }] };
      }
      if (place.inTransaction && random.chance(0.2)) {
        return { kind: 'transaction', body: this.steps({ ...deeper, inSavepoint: true }) };
      }
      return this.call(random.pick(MODES), deeper);
    }
    return this.leaf(place);
  }

  private begin(deeper: Place): Step {
    if (deeper.connections === 0) return this.leaf({ ...deeper, inTransaction: false });
    if (this.random.chance(0.15)) {
      return { kind: 'explicit', body: this.steps({ ...deeper, explicit: true, parallel: this.random.chance(0.5) }) };
    }
    return this.call(this.random.pick(['REQUIRED', 'REQUIRED', 'NESTED', 'REQUIRES_NEW', 'MANDATORY', 'SUPPORTS']), deeper);
  }

  private call(propagation: Propagation, deeper: Place): Step {
    const leaves = propagation === 'NOT_SUPPORTED' || propagation === 'NEVER';
    const begins = deeper.inTransaction
      ? propagation === 'REQUIRES_NEW'
      : propagation === 'REQUIRED' || propagation === 'NESTED' || propagation === 'REQUIRES_NEW';
    if ((begins || leaves) && deeper.connections === 0) return this.leaf(deeper);
    const place: Place = {
      ...deeper,
      inTransaction: leaves ? false : deeper.inTransaction || begins,
      inSavepoint: leaves || begins ? false : deeper.inSavepoint || (deeper.inTransaction && propagation === 'NESTED'),
      connections: deeper.connections - (begins || leaves ? 1 : 0),
    };
    return { kind: 'call', propagation, body: this.steps(place) };
  }

  private parallel(deeper: Place): Step {
    const count = this.random.int(2, 3);
    const connections = Math.floor(deeper.connections / count);
    return {
      kind: 'parallel',
      settled: this.random.chance(0.6),
      branches: Array.from({ length: count }, () => {
        const body = this.steps({ ...deeper, parallel: true, connections });
        return this.random.chance(0.5) ? [this.pause(), ...body] : body;
      }),
    };
  }

  private leaf(place: Place): Step {
    const { random } = this;
    const kind = random.int(0, 19);
    if (kind < 9) return this.write();
    if (kind < 10) return { kind: 'row', id: this.ids++, way: random.pick(WAYS) };
    if (kind < 11) return { kind: 'emit', id: this.ids++ };
    if (kind < 12) return { kind: 'hooks', id: this.ids++ };
    if (kind < 14) return { kind: 'throw' };
    if (kind < 16) return this.duplicate();
    if (!this.isSequential) return kind < 18 ? this.pause() : this.write();
    return place.inTransaction ? this.sql(place) : this.write();
  }

  /** TypeORM itself loses its way when a savepoint of `manager.transaction` cannot be set: one or the other. */
  private explicitStep(place: Place): Step {
    const { random } = this;
    const nests = place.parallel;
    const deeper = { ...place, depth: place.depth + 1 };
    if (place.depth < 5 && random.chance(0.3)) {
      if (random.chance(0.5) || !nests) return { kind: 'catch', body: this.steps(deeper) };
      return { kind: 'explicit', body: this.steps(deeper) };
    }
    const kind = random.int(0, 11);
    if (kind < 6) return this.write();
    if (kind < 7) return { kind: 'row', id: this.ids++, way: 'insert' };
    if (kind < 8) return { kind: 'emit', id: this.ids++ };
    if (kind < 9) return { kind: 'throw' };
    if (nests || !this.isSequential) return this.write();
    return kind < 10 ? this.duplicate() : this.sql({ ...place, inSavepoint: true });
  }

  private write(): Step {
    return { kind: 'write', id: this.ids++, way: this.random.pick(WAYS), emitFirst: this.random.chance(0.5) };
  }

  private pause(): Step {
    return { kind: 'pause', ticks: this.random.chance(0.3) ? 'turn' : this.random.int(0, 24) };
  }

  private duplicate(): Step {
    const step: Step = { kind: 'duplicate', way: this.random.pick(WAYS) };
    return this.random.chance(0.7) ? { kind: 'catch', body: [step] } : step;
  }

  private sql({ inSavepoint }: Place): Step {
    const { random } = this;
    const ends = !inSavepoint && random.chance(0.08);
    const command = random.pick<SqlCommand>(
      ends ? ['COMMIT', 'ROLLBACK'] : ['SAVEPOINT', 'SAVEPOINT', 'SAVEPOINT', 'ROLLBACK TO SAVEPOINT', 'RELEASE SAVEPOINT'],
    );
    const step: Step = { kind: 'sql', command, name: ends ? '' : random.pick(['a', 'b']) };
    return random.chance(0.5) ? { kind: 'catch', body: [step] } : step;
  }
}
