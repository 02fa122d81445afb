// npm run mutants -- [part of a name or file]: applies one mutant after the other and runs the tests that must notice it.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mutants } from './mutants.mjs';

const ROOT = join(import.meta.dirname, '../..');
const TIMEOUT_MS = 240_000;
/** By default the tests of one database, and those of none. */
const ONE_DATABASE = '^(?!.*(mysql|mariadb|sqlite)).*$';

const wanted = mutants.filter(({ name, file }) => process.argv.slice(2).every((part) => `${file}: ${name}`.includes(part)));
let survived = 0;
for (const { name, file, from, to, tests, only, equal } of wanted) {
  const path = join(ROOT, file);
  const source = readFileSync(path, 'utf8');
  const label = `${file.replace('libs/outbox/src/', '')}: ${name}`;
  if (source.split(from).length !== 2) {
    console.log(`?? ${label}: the text to change is not there once`);
    survived++;
    continue;
  }
  const restore = () => writeFileSync(path, source);
  process.once('exit', restore);
  try {
    writeFileSync(path, source.replace(from, () => to));
    const verdict = run(tests, only ?? ONE_DATABASE);
    if (verdict === 'survived' && !equal) survived++;
    console.log(`${verdict === 'survived' ? (equal ? '==' : '!!') : 'ok'} ${label}: ${verdict}${verdict === 'survived' && equal ? `: ${equal}` : ''}`);
  } finally {
    restore();
    process.off('exit', restore);
  }
}
console.log(`${wanted.length - survived} of ${wanted.length} killed or explained`);
process.exitCode = survived > 0 ? 1 : 0;

/** @param {string[]} tests @param {string} only */
function run(tests, only) {
  const { status, signal } = spawnSync(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', '--project', 'integration', '--bail', '1', '--retry', '0', '-t', only, ...tests],
    { cwd: ROOT, stdio: 'ignore', timeout: TIMEOUT_MS, killSignal: 'SIGTERM' },
  );
  if (signal !== null) return 'killed (the tests never ended)';
  return status === 0 ? 'survived' : 'killed';
}
