import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);

/** What each bench promises to say. */
const FIGURES: readonly { readonly bench: string; readonly args: readonly string[]; readonly figures: readonly string[] }[] = [
  { bench: 'drain', args: ['--db', 'postgres', '--client', 'platformatic'], figures: ['perSecond', 'rawPerSecond', 'ratioToRaw', 'timesTextbook', 'sweptPerSecond'] },
  { bench: 'latency', args: ['--db', 'mariadb'], figures: ['p50', 'p99', 'floorP50', 'floorP99'] },
  { bench: 'consume', args: ['--db', 'postgres'], figures: ['ratio', 'batchPerSecond'] },
  { bench: 'interference', args: ['--db', 'mysql'], figures: ['p99Ratio', 'lockWaits'] },
  { bench: 'backlog', args: ['--db', 'mariadb', '--settle', 'delete'], figures: ['ratio'] },
  { bench: 'soak', args: ['--db', 'postgres', '--open-transaction', '1'], figures: ['claimMsFirst', 'claimMsLast', 'rssFirst', 'rssLast'] },
  { bench: 'partial-index', args: ['--db', 'postgres'], figures: ['tableClaimMs', 'indexClaimMs', 'tableClaimMsOpen', 'indexClaimMsOpen', 'writesRatio'] },
  { bench: 'enqueue', args: ['--db', 'mysql'], figures: ['addedMsAt1', 'ratioAt16', 'ratioAt64', 'strictAddedMsAt1', 'strictRatioAt16'] },
];

/** One short run of each bench, so that none rots. Its figures say nothing. */
describe('the bench', () => {
  beforeAll(async () => {
    await run('npm', ['run', '--silent', 'build:lib']);
    await run('npx', ['tsc', '-p', 'bench']);
  });

  it.each(FIGURES)('$bench ends with one JSON object that has its figures', async ({ bench, args, figures }) => {
    const { stdout } = await run('node', ['bench/dist/main.js', bench, ...args, '--smoke', '--json']);
    const lines = stdout.trim().split('\n');
    expect(lines).toHaveLength(1);
    const said = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
    expect(said).toMatchObject({ bench, smoke: true, machine: expect.anything() as unknown, versions: expect.anything() as unknown, settings: expect.anything() as unknown });
    for (const figure of figures) expect(said[figure], figure).toSatisfy(Number.isFinite);
  });

  it('drains with several processes, workers and lanes', async () => {
    const { stdout } = await run('node', ['bench/dist/main.js', 'drain', '--db', 'mysql', '--relays', '2', '--workers', '1', '--lanes', '8', '--smoke', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ relays: 2, workers: 1, lanes: 8, perSecond: expect.any(Number) as unknown });
  });

  it('says how it is called when it is called wrongly', async () => {
    const call = run('node', ['bench/dist/main.js', 'drain', '--db', 'oracle']);
    await expect(call).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining('--db must be one of mysql, mariadb, postgres') as unknown });
    const other = run('node', ['bench/dist/main.js', 'latency', '--relays', '2']);
    await expect(other).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining('--relays is for drain') as unknown });
  });
});
