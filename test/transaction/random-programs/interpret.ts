import { setImmediate } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Outbox, OutboxError, OutboxEvent, TransactionRunner } from 'nestjs-transactional-outbox';
import { DataSource, type EntityManager, QueryFailedError, Repository } from 'typeorm';
import { Note } from '../../setup/notes';
import type { Step, Way } from './program';

@OutboxEvent({ type: 'row.written', topic: 'rows', key: (event: RowWritten) => event.id })
export class RowWritten {
  constructor(readonly id: number) {}
}

/** A row that is always there. */
export const TAKEN = 0;

/** A transaction or savepoint as it went. */
export interface Region {
  readonly kind: 'transaction' | 'savepoint';
  readonly around: Region | undefined;
  outcome: 'open' | 'ok' | 'failed';
}

/** Something that a program did and was told to have succeeded. */
export interface Done {
  readonly what: 'row' | 'event' | 'hooks';
  readonly id: number;
  /** `undefined`: outside of every transaction. */
  readonly region: Region | undefined;
}

/** What a program saw of itself. */
export class Trace {
  readonly done: Done[] = [];
  /** Rows of operations of several statements that failed: the first may have stood. */
  readonly unsure = new Set<number>();
  readonly hooks: string[] = [];
  readonly left: Promise<unknown>[] = [];
  outcome = '';
  /** What the program ended with, for people. */
  error: unknown;
}

interface Env {
  readonly trace: Trace;
  /** Added to the program's own ids. */
  readonly base: number;
  readonly region: Region | undefined;
  readonly manager: EntityManager | undefined;
}

class OwnError extends Error {}

/** Runs programs with the library. */
@Injectable()
export class Interpreter {
  constructor(
    @InjectRepository(Note) private readonly notes: Repository<Note>,
    private readonly dataSource: DataSource,
    private readonly outbox: Outbox,
    private readonly transactions: TransactionRunner,
  ) {}

  async program(steps: readonly Step[], base: number): Promise<Trace> {
    const trace = new Trace();
    try {
      await this.run(steps, { trace, base, region: undefined, manager: undefined });
      trace.outcome = 'ok';
    } catch (error) {
      trace.outcome = kindOf(error);
      trace.error = error;
    }
    for (let seen = 0; seen < trace.left.length; ) {
      seen = trace.left.length;
      await Promise.allSettled(trace.left);
    }
    return trace;
  }

  private async run(steps: readonly Step[], env: Env): Promise<void> {
    for (const step of steps) await this.step(step, env);
  }

  private async step(step: Step, env: Env): Promise<void> {
    const { trace, manager } = env;
    switch (step.kind) {
      case 'write':
        if (!env.region || step.emitFirst) {
          this.emit(step.id, env);
          return this.insert(step.way, step.id, env);
        }
        await this.insert(step.way, step.id, env);
        return this.emit(step.id, env);
      case 'row':
        return this.insert(step.way, step.id, env);
      case 'emit':
        return this.emit(step.id, env);
      case 'hooks':
        this.transactions.afterCommit(() => trace.hooks.push(`committed ${step.id}`));
        this.transactions.afterRollback(() => trace.hooks.push(`rolled back ${step.id}`));
        trace.done.push({ what: 'hooks', id: step.id, region: env.region });
        return;
      case 'duplicate':
        return this.write(step.way === 'save' ? 'insert' : step.way, TAKEN, manager);
      case 'throw':
        throw new OwnError('thrown by the program');
      case 'pause':
        if (step.ticks === 'turn') return setImmediate();
        for (let i = 0; i < step.ticks; i++) await Promise.resolve();
        return;
      case 'sql':
        await (manager ?? this.dataSource).query(`${step.command} ${step.name}`);
        return;
      case 'catch':
        await this.run(step.body, env).catch(kindOf);
        return;
      case 'call':
        return this.call(step, env);
      case 'transaction':
        return this.region('savepoint', env, (inside) =>
          this.dataSource.transaction(() => this.run(step.body, { ...env, region: inside })),
        );
      case 'explicit':
        return this.region(env.region ? 'savepoint' : 'transaction', env, (inside) =>
          (manager ?? this.dataSource).transaction((own) => this.run(step.body, { ...env, region: inside, manager: own })),
        );
      case 'parallel': {
        const branches = step.branches.map((branch) => this.run(branch, env));
        // Those that outlive a failure of another are looked at, too, when the program has ended.
        trace.left.push(...branches);
        await (step.settled ? Promise.allSettled(branches) : Promise.all(branches));
        return;
      }
      case 'leave': {
        const left = this.run(step.body, env);
        left.catch(kindOf);
        trace.left.push(left);
        return;
      }
    }
  }

  private async call(step: Extract<Step, { kind: 'call' }>, env: Env): Promise<void> {
    const { propagation } = step;
    const run = (region: Region | undefined): Promise<void> =>
      this.transactions.run({ propagation }, () => this.run(step.body, { ...env, region }));
    const begins = propagation === 'REQUIRES_NEW' || (!env.region && (propagation === 'REQUIRED' || propagation === 'NESTED'));
    if (begins) return this.region('transaction', env, run);
    if (propagation === 'NESTED') return this.region('savepoint', env, run);
    return run(propagation === 'NOT_SUPPORTED' || propagation === 'NEVER' ? undefined : env.region);
  }

  private async region(kind: Region['kind'], env: Env, run: (region: Region) => Promise<unknown>): Promise<void> {
    const region: Region = { kind, around: env.region, outcome: 'open' };
    try {
      await run(region);
      region.outcome = 'ok';
    } catch (error) {
      region.outcome = 'failed';
      throw error;
    }
  }

  private emit(id: number, { base, manager, trace, region }: Env): void {
    this.outbox.emit(new RowWritten(base + id), manager ? { manager } : {});
    trace.done.push({ what: 'event', id, region });
  }

  private async insert(way: Way, id: number, { base, manager, trace, region }: Env): Promise<void> {
    try {
      await this.write(way, base + id, manager);
    } catch (error) {
      if (way !== 'query') trace.unsure.add(id);
      throw error;
    }
    trace.done.push({ what: 'row', id, region });
  }

  private async write(way: Way, id: number, manager: EntityManager | undefined): Promise<void> {
    const notes = manager?.getRepository(Note) ?? this.notes;
    switch (way) {
      case 'insert':
        await notes.insert({ id });
        return;
      case 'save':
        await notes.save({ id });
        return;
      case 'builder':
        await notes.createQueryBuilder().insert().values({ id }).execute();
        return;
      case 'query':
        await notes.query(`INSERT INTO note (id, text) VALUES (${id}, '')`);
    }
  }
}

function kindOf(error: unknown): string {
  if (error instanceof OwnError) return 'OWN';
  if (error instanceof OutboxError) return error.code;
  if (error instanceof QueryFailedError) return 'QUERY';
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
