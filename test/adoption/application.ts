import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Ran, run } from './run';

/** npm puts its configured registry in the place of this host. */
const REGISTRY = 'https://registry.npmjs.org';
const SQLITE = 'better-sqlite3';
const SQLITE_BINARY = 'build/Release/better_sqlite3.node';

/** Copies a template out of the repository and installs it by its lock, and the tarball as any user would. */
export async function install(template: string, folder: string, tarball: string): Promise<Ran> {
  cpSync(fileURLToPath(new URL(`./apps/${template}`, import.meta.url)), folder, { recursive: true });
  addAddresses(join(folder, 'package-lock.json'));
  const installed = await run(folder, 'npm', 'install', '--no-save', '--ignore-scripts', '--prefer-offline', tarball);
  return installed.code === 0 ? provideSqlite(folder, installed) : installed;
}

interface Lock {
  readonly packages: Record<string, { readonly name?: string; readonly version: string; resolved?: string }>;
}

/** The locks name no addresses, so that any registry will do; with them npm need not look each package up. */
function addAddresses(file: string): void {
  const lock = JSON.parse(readFileSync(file, 'utf8')) as Lock;
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (path === '') continue;
    const name = entry.name ?? path.replace(/^.*node_modules\//, '');
    entry.resolved = `${REGISTRY}/${name}/-/${basename(name)}-${entry.version}.tgz`;
  }
  writeFileSync(file, JSON.stringify(lock));
}

/** The repository has the native module already; compiling it again can take minutes. */
async function provideSqlite(folder: string, installed: Ran): Promise<Ran> {
  const own = dirname(createRequire(import.meta.url).resolve(`${SQLITE}/package.json`));
  const wanted = join(folder, 'node_modules', SQLITE);
  if (versionOf(own) !== versionOf(wanted) || !existsSync(join(own, SQLITE_BINARY))) {
    return run(folder, 'npm', 'rebuild', SQLITE);
  }
  mkdirSync(dirname(join(wanted, SQLITE_BINARY)), { recursive: true });
  cpSync(join(own, SQLITE_BINARY), join(wanted, SQLITE_BINARY));
  return installed;
}

function versionOf(folder: string): unknown {
  return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: unknown }).version;
}
