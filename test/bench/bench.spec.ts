import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const run = promisify(execFile);

/** One round of each bench, so that none rots. Its figures say nothing. */
describe('the bench', () => {
  it('enqueue ends with one JSON object that has its figures', async () => {
    const { stdout } = await run('npm', ['run', '--silent', 'bench', '--', 'enqueue', '--db', 'mysql', '--smoke']);
    const last: unknown = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
    expect(last).toMatchObject({
      bench: 'enqueue',
      db: 'mysql',
      addedMsAt1: expect.any(Number) as unknown,
      ratioAt16: expect.any(Number) as unknown,
      ratioAt64: expect.any(Number) as unknown,
      strictAddedMsAt1: expect.any(Number) as unknown,
      strictRatioAt16: expect.any(Number) as unknown,
    });
  });
});
