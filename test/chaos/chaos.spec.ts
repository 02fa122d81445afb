import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Verdict } from './src/checker.js';
import { FAULT_KINDS } from './src/plan.js';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

/** Minutes, on a machine that is busy with other things: the run waits for what it has begun to arrive. */
const LONG_MS = 600_000;

/** A short run of `npm run chaos`, with servers and processes of its own, on the built library. */
async function chaos(database: string, seed: number, ...more: string[]): Promise<{ verdict: Verdict; told: string }> {
  const args = ['--db', database, '--seed', String(seed), '--seconds', '22', '--rate', '40', '--relays', '2', '--writers', '1', '--consumers', '1', ...more];
  const { stdout, stderr } = await run(process.execPath, ['test/chaos/dist/cli.js', '--json', ...args], { cwd: ROOT, maxBuffer: 1e8 }).catch(
    // A broken promise is an exit code, with the verdict all the same.
    (error: unknown) => error as { stdout: string; stderr: string },
  );
  const last = stdout.trimEnd().split('\n').at(-1);
  if (!last) throw new Error(`the chaos run said nothing:\n${stderr}`);
  return { verdict: JSON.parse(last) as Verdict, told: stderr };
}

/** All but a restart of the broker, which takes too much of a short run. */
const FAULTS = FAULT_KINDS.filter((kind) => kind !== 'broker-restart').join(',');

describe('a short chaos run', () => {
  beforeAll(async () => {
    await run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'test/chaos'], { cwd: ROOT });
  }, LONG_MS);

  // J16: on one of them what was sent is deleted.
  it.each([['mysql', 11, 'mark'], ['mariadb', 12, 'delete'], ['postgres', 13, 'mark']] as const)(
    'keeps the promises on %s',
    async (database, seed, settle) => {
      const { verdict, told } = await chaos(database, seed, '--faults', FAULTS, '--settle', settle);
      expect(verdict, told).toMatchObject({ lost: 0, invented: 0, orderViolations: 0, effectsWrong: 0, figuresWrong: 0 });
      expect(verdict.faults).toBeGreaterThan(5);
      expect(verdict.published).toBeGreaterThan(0);
      expect(verdict.committed).toBeLessThanOrEqual(verdict.published + verdict.parked);
    },
    LONG_MS,
  );
});
