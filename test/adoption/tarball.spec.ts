import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { install } from './application';
import { type Ran, run } from './run';

/** Mostly for a machine that has to compile better-sqlite3. */
const TIMEOUT = 600_000;
/** How Node begins its warnings. */
const NODE_WARNING = /\(node:\d+\)/;
const LIBRARY = fileURLToPath(new URL('../../libs/outbox', import.meta.url));

interface Manifest {
  readonly main: string;
  readonly types: string;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

let folder: string;
let tarball: string;
/** Where the tarball is unpacked. */
let contents: string;
let files: string[];
let manifest: Manifest;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'outbox-adoption-'));
  succeeded(await run(LIBRARY, 'npm', 'pack', '--pack-destination', folder));
  tarball = join(folder, readdirSync(folder)[0] ?? '');
  succeeded(await run(folder, 'tar', '-xzf', tarball));
  contents = join(folder, 'package');
  files = filesIn(contents);
  manifest = JSON.parse(text('package.json')) as Manifest;
}, TIMEOUT);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the tarball', () => {
  it('holds what was built of each source, the page, the entries, README and licence, and nothing else', () => {
    const sources = filesIn(join(LIBRARY, 'src')).filter((file) => !file.endsWith('.spec.ts'));
    const built = sources.flatMap((file) => ['.js', '.js.map', '.d.ts'].map((end) => `dist/${file.slice(0, -3)}${end}`));
    const entries = Object.keys(manifest.exports).filter((entry) => !['.', './package.json'].includes(entry));
    const stubs = entries.flatMap((entry) => ['.js', '.d.ts'].map((end) => `${entry.slice(2)}${end}`));
    const page = filesIn(join(LIBRARY, 'dashboard')).flatMap((file) => (file === 'tsconfig.json' ? [] : [`dashboard/${file}`]));

    expect(files).toEqual(['LICENSE', 'README.md', 'package.json', ...built, ...page, ...stubs].sort());
    expect(text('LICENSE')).toMatch(/^MIT License\n\nCopyright \(c\) \d+ the nestjs-transactional-outbox authors\n/);
  });

  it('has every entry, for tools that read `exports` and for those that look for files', () => {
    for (const [entry, target] of Object.entries(manifest.exports)) {
      for (const path of typeof target === 'string' ? [target] : [target.types, target.default]) {
        expect(existsSync(join(contents, path)), `${entry}: ${path}`).toBe(true);
      }
    }
    expect(manifest.exports['.']).toEqual({ types: manifest.types, default: manifest.main });
  });

  it('has source maps that carry their sources', () => {
    const maps = files.filter((file) => file.endsWith('.map'));
    expect(maps).not.toHaveLength(0);
    for (const file of maps) {
      const { sources, sourcesContent } = JSON.parse(text(file)) as { sources: string[]; sourcesContent?: string[] };
      expect(sourcesContent, file).toHaveLength(sources.length);
    }
  });

  it('asks for every package that its code and its types name', () => {
    const asked = { ...manifest.dependencies, ...manifest.peerDependencies };
    const named = files.filter((file) => /\.(?:js|d\.ts)$/.test(file)).flatMap((file) => packagesIn(text(file)));
    expect(Object.keys(asked)).toEqual(expect.arrayContaining([...new Set(named)]));
  });
});

describe.concurrent('an application outside the repository', () => {
  it('Nest 12, ESM, TypeORM 1, TypeScript 6, vitest', { timeout: TIMEOUT }, async () => {
    expect((await adopt('nest12-esm-vitest', ['build'])).report).not.toMatch(NODE_WARNING);
  });

  it('Nest 11, CommonJS, TypeORM 0.3, TypeScript 5, jest', { timeout: TIMEOUT }, async () => {
    expect((await adopt('nest11-cjs-jest', ['build', 'build:oldest'])).report).not.toMatch(NODE_WARNING);
  });
});

/** Installs an app, builds it, starts it as a plain program, and runs its own test. */
async function adopt(template: string, builds: readonly string[]): Promise<Ran> {
  const app = join(folder, template);
  mkdirSync(app);
  succeeded(await install(template, app, tarball));
  for (const build of builds) succeeded(await run(app, 'npm', 'run', build));
  const started = succeeded(await run(app, 'node', 'dist/src/main.js'));
  expect(started).toMatchObject({ stdout: 'order reserved\n', stderr: '' });
  return succeeded(await run(app, 'npm', 'test'));
}

function succeeded(ran: Ran): Ran {
  expect(ran.code, ran.report).toBe(0);
  return ran;
}

function text(file: string): string {
  return readFileSync(join(contents, file), 'utf8');
}

/** Paths below a folder, with `/`, sorted. */
function filesIn(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1).split(sep).join('/'))
    .sort();
}

/** The packages that a module loads or takes types from. */
function packagesIn(code: string): string[] {
  return [...code.matchAll(/(?:\brequire\(|\bimport\(|\bfrom |\bimport )["']([^."'][^"']*)["']/g)]
    .map(([, name = '']) => name)
    .filter((name) => !isBuiltin(name))
    .map((name) => name.split('/').slice(0, name.startsWith('@') ? 2 : 1).join('/'));
}
