import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../../libs/outbox/dist/cli/main.js', import.meta.url));

describe('npx outbox as a process', () => {
  it.each([
    ['stdout', 0, ['migration', '--dialect', 'mysql']],
    ['stderr', 2, ['status']],
  ] as const)('ends as ever when nobody reads its %s any more', async (left, code, args) => {
    const child = spawn(process.execPath, [PROGRAM, ...args], { env: { PATH: process.env['PATH'] }, stdio: ['ignore', 'pipe', 'pipe'] });
    child[left].destroy();
    const said = text(left === 'stdout' ? child.stderr : child.stdout);
    expect(await once(child, 'close')).toEqual([code, null]);
    expect(await said).toBe('');
  });
});
