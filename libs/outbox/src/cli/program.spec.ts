import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { processLog } from './process-log';
import { oneLine, printable, table, toJson } from './print';
import { runCommand } from './program';

async function outbox(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCommand(args, { out: (text) => out.push(text), err: (text) => err.push(text) });
  return { code, out: out.join('\n'), err: err.join('\n') };
}

describe('npx outbox, without a database', () => {
  it.each(['5', '[]', 'null', '"outbox"', '{'])('takes no names of tables that are none: %s', async (tables) => {
    expect(await outbox('--url', 'postgres://nowhere.invalid/x', '--tables', tables, 'status')).toMatchObject({ code: 2, err: expect.stringContaining('--tables must be an object') });
  });

  it('takes no name that is no text, and none of a table that there is not', async () => {
    for (const tables of ['{"message":5}', '{"constructor":"x"}']) {
      expect(await outbox('--url', 'postgres://nowhere.invalid/x', '--tables', tables, 'status')).toMatchObject({ code: 2, err: expect.stringContaining('tables') });
    }
  });

  it.each(['mysql', 'mariadb', 'postgres', 'sqlite'])('prints the tables by the names that it is given, for %s', async (dialect) => {
    const { code, out } = await outbox('--tables', '{"message":"my_log","lane":"my_lane"}', 'migration', '--dialect', dialect);
    expect(code).toBe(0);
    expect(out).toContain('my_log');
    expect(out).toContain('my_lane');
    expect(out).not.toMatch(/outbox_(message|lane)\b/);
  });

  it('makes no file of SQLite', async () => {
    const file = join(tmpdir(), `outbox-${process.pid}`, 'not-there.db');
    expect(await outbox('--url', `sqlite:${file}`, 'status')).toMatchObject({ code: 2, err: `There is no file ${file}.` });
    expect(existsSync(join(file, '..'))).toBe(false);
    expect(await outbox('--url', 'sqlite:', 'doctor')).toMatchObject({ code: 2 });
  });

  it.each(['mysql:', 'postgres:x', 'oracle://x/y', 'x'])('takes no address of a database that is none: %s', async (url) => {
    expect(await outbox('--url', url, 'status')).toMatchObject({ code: 2, err: expect.stringContaining('--url must begin with') });
  });

  it.each(['5', '2026-02-31', '2026-02-31T00:00:00Z', '2026-01-31T12:00:00', '2026-01-31 12:00', '2026-01-31T25:00:00Z', 'today'])('takes no time that is none, or has no zone: %s', async (from) => {
    expect(await outbox('--url', 'postgres://nowhere.invalid/x', 'list', '--from', from)).toMatchObject({ code: 2, err: expect.stringContaining('Give a time') });
  });

  it.each(['2026-01-31', '2026-01-31T12:00Z', '2026-01-31T12:00:00.123+02:00', '2028-02-29'])('takes a time: %s', async (from) => {
    expect(await outbox('--url', 'postgres://postgres@127.0.0.1:1/x', 'list', '--from', from)).toMatchObject({ code: 1, err: expect.stringContaining('cannot be reached') });
  });

  it('prints nothing that a terminal obeys', async () => {
    const orders = 'a\u001b[2J\r\n\u009b1mb\u202ec\u2028d\u2066e';
    const harmless = 'a [2J 1mb c d e';
    expect(oneLine(orders)).toBe(harmless);
    expect(table(['x'], [[orders]])).toBe(`x\n${harmless}`);
    expect(printable('one\ntwo\u001b[2J')).toBe('one\ntwo [2J');
    const json = toJson({ orders });
    expect(JSON.parse(json)).toEqual({ orders });
    expect(json).toMatch(/^[\x20-\x7e]+$/);
    const lines: string[] = [];
    for (const isJson of [true, false]) processLog((line) => lines.push(line), isJson).log(orders, 'Test');
    expect(lines.join('')).toMatch(/^[\x20-\x7e]+$/);
    const { err } = await outbox('--data-source', '/not\u001b[2Jthere.js', 'status');
    expect(err).toBe('There is no file /not [2Jthere.js.');
  });
});
