import { setTimeout } from 'node:timers/promises';
import { TypeOrmModule } from '@nestjs/typeorm';
import { type TestApp } from '../../setup/app';
import { Note } from '../../setup/notes';
import { compare, type Found } from './check';
import { MAX_IDS } from './generate';
import { Interpreter, TAKEN, type Trace } from './interpret';
import { type Dialect, predict } from './model';
import { isWellPlaced, print, type Program, smaller } from './program';

/** Milliseconds after which programs are taken to wait for themselves. */
const HANGS_AFTER = Number(process.env['OUTBOX_HANG'] ?? 60_000);

/** Most runs that the search for a smaller failing program takes. */
const MAX_SHRINKS = 400;

interface Ran {
  readonly program: Program;
  readonly base: number;
  readonly trace: Trace;
}

/** Runs programs on one database and compares what they leave there. */
export class Bench {
  private base = 1000;
  private lastMessage = '0';
  private readonly interpreter: Interpreter;

  private constructor(
    private readonly dialect: Dialect,
    private readonly app: TestApp,
  ) {
    this.interpreter = app.app.get(Interpreter);
  }

  static readonly parts = { entities: [Note], providers: [Interpreter], imports: [TypeOrmModule.forFeature([Note])] };

  static async create(dialect: Dialect, app: TestApp): Promise<Bench> {
    await app.dataSource.query(`INSERT INTO note (id, text) VALUES (${TAKEN}, '')`);
    return new Bench(dialect, app);
  }

  /** Runs programs side by side. What went wrong is thrown, with the smallest program that shows it. */
  async run(programs: readonly Program[]): Promise<void> {
    for (const { program, problems } of await this.unlessHung(programs, this.findings(programs))) {
      if (problems.length === 0) continue;
      const { program: small, problems: why } = await this.shrink(program, problems);
      throw new Error(
        `Program ${program.seed} on ${this.dialect} (OUTBOX_SEED=${program.seed} OUTBOX_PROGRAMS=1):\n` +
          `${problems.join('\n')}\n\n${print(program.body)}\n\nSmallest found:\n${why.join('\n')}\n\n${print(small.body)}`,
      );
    }
  }

  private async findings(programs: readonly Program[]): Promise<{ program: Program; problems: string[] }[]> {
    const first = this.base;
    const ran = await Promise.all(programs.map((program) => this.interpret(program)));
    const rows = (await this.app.dataSource.query(
      `SELECT id FROM note WHERE id >= ${first} ORDER BY id`,
    )) as { id: number }[];
    const messages = (await this.app.dataSource.query(
      `SELECT m.id AS id, m.payload AS payload, p.id AS pending FROM outbox_message m
       LEFT JOIN outbox_pending p ON p.id = m.id WHERE m.id > ${this.lastMessage} ORDER BY m.id`,
    )) as { id: string | number; payload: string; pending: string | number | null }[];
    this.lastMessage = String(messages.at(-1)?.id ?? this.lastMessage);
    const rowIds = rows.map(({ id }) => id);
    const eventIds = messages.map(({ payload }) => (JSON.parse(payload) as { id: number }).id);
    const notPending = messages.filter(({ pending }) => pending === null).map(({ payload }) => payload);
    return ran.map(({ program, base, trace }) => {
      const own = (ids: readonly number[]): number[] =>
        ids.filter((id) => id >= base && id < base + MAX_IDS).map((id) => id - base);
      const found: Found = { rows: own(rowIds), events: own(eventIds) };
      const prediction = program.isSequential ? predict(this.dialect, program.body) : undefined;
      const problems = compare(program, prediction, trace, found);
      if (notPending.length > 0) problems.push(`logged but not pending: ${notPending.join(', ')}`);
      return { program, problems };
    });
  }

  /** Programs that wait for themselves would else be found by nobody. */
  private async unlessHung<T>(programs: readonly Program[], work: Promise<T>): Promise<T> {
    const timer = new AbortController();
    const hung = setTimeout(HANGS_AFTER, undefined, { signal: timer.signal }).then(() => {
      const sources = programs.map(({ seed, body }) => `${seed}:\n${print(body)}`);
      throw new Error(`One of these programs hangs on ${this.dialect}:\n${sources.join('\n\n')}`);
    });
    try {
      return await Promise.race([work, hung]);
    } finally {
      timer.abort();
      hung.catch(() => undefined);
    }
  }

  private async interpret(program: Program): Promise<Ran> {
    const { base } = this;
    this.base += MAX_IDS;
    return { program, base, trace: await this.interpreter.program(program.body, base) };
  }

  /** Takes steps away as long as the rest still goes wrong. */
  private async shrink(program: Program, problems: string[]): Promise<{ program: Program; problems: string[] }> {
    let best = { program, problems };
    let runs = 0;
    for (let found = true; found && runs < MAX_SHRINKS; ) {
      found = false;
      for (const body of smaller(best.program.body)) {
        if (!isWellPlaced(body)) continue;
        if (++runs > MAX_SHRINKS) break;
        const smallerOne = [{ ...program, body }];
        const finding = await this.unlessHung(smallerOne, this.findings(smallerOne)).then(
          ([only]) => only,
          // What hangs has spoilt the database connection: no further run can be trusted.
          (error: unknown) => ({ program: { ...program, body }, problems: [String(error)], isLast: true }),
        );
        if (!finding || finding.problems.length === 0) continue;
        if ('isLast' in finding) return finding;
        best = finding;
        found = true;
        break;
      }
    }
    return best;
  }
}
