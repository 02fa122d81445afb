import { afterAll, beforeAll, describe, it } from 'vitest';
import { startApp, type TestApp } from '../setup/app';
import { type DatabaseName, DATABASES } from '../setup/databases';
import { Bench } from './random-programs/bench';
import { generate } from './random-programs/generate';

/** Programs that run side by side; each may hold a few connections. */
const BESIDE = 4;

const DEFAULT_COUNTS: Record<DatabaseName, number> = { sqlite: 4000, mysql: 1000, mariadb: 1000, postgres: 1000 };

/** `OUTBOX_PROGRAMS` sets how many programs to run on each database, `OUTBOX_SEED` the first one's seed. */
const COUNT = process.env['OUTBOX_PROGRAMS'];
const SEED = Number(process.env['OUTBOX_SEED'] ?? 0);

/**
 * Programs of nested transactional calls, made by seed. Rows, events and hooks must be those that a small model
 * says; where branches run in parallel, those of the parts that were told to have succeeded.
 */
describe.each(DATABASES)('random programs on %s', (database) => {
  let app: TestApp;
  let bench: Bench;

  beforeAll(async () => {
    // At REPEATABLE READ, InnoDB keeps the gap of a row that a savepoint took back: a transaction of its own inside
    // (REQUIRES_NEW) would wait for the one around it.
    const isolation = database === 'sqlite' ? {} : { isolationLevel: 'READ COMMITTED' };
    app = await startApp(database, { ...Bench.parts, dataSource: { poolSize: BESIDE * 5 + 2, ...isolation } });
    bench = await Bench.create(database, app);
  });
  afterAll(() => app.close());

  it('agree with the model', { timeout: 600_000 }, async () => {
    const end = SEED + (COUNT === undefined ? DEFAULT_COUNTS[database] : Number(COUNT));
    for (let seed = SEED; seed < end; seed += BESIDE) {
      const programs = Array.from({ length: Math.min(BESIDE, end - seed) }, (_, index) => generate(seed + index));
      await bench.run(programs);
    }
  });
});
