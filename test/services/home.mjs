// Where things lie: the cache home (state, locks) and the servers' home (downloads, data folders).
import { chmodSync, lstatSync, mkdirSync, statSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

const PROJECT = 'nestjs-transactional-outbox';

export const isRoot = process.getuid?.() === 0;

/** The cache folder outside the work tree. */
export function home() {
  const { OUTBOX_SERVICES_HOME, XDG_CACHE_HOME } = process.env;
  const folder = resolve(OUTBOX_SERVICES_HOME || join(XDG_CACHE_HOME || join(homedir(), '.cache'), PROJECT));
  mkdirSync(folder, { recursive: true });
  return folder;
}

/**
 * Downloads and data folders. As root the servers drop to other users, which cannot pass through
 * a home that only root may enter: then a folder below the system's lasting temporary folder serves.
 */
export function serversHome() {
  const inHome = home();
  if (!isRoot || isTraversable(inHome)) return inHome;
  return privateFolder(join(lastingTemporaryFolder(), `${PROJECT}-${process.getuid?.()}`));
}

/** @param {string} name */
export function folderInHome(name) {
  const folder = join(home(), name);
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** @param {string} name */
export function folderInServersHome(name) {
  const folder = join(serversHome(), name);
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o755);
  return folder;
}

/** @param {string} folder */
function isTraversable(folder) {
  for (let at = folder; ; at = dirname(at)) {
    if ((statSync(at).mode & 0o001) === 0) return false;
    if (at === dirname(at)) return true;
  }
}

function lastingTemporaryFolder() {
  try {
    return statSync('/var/tmp').isDirectory() ? '/var/tmp' : tmpdir();
  } catch {
    return tmpdir();
  }
}

/**
 * Anyone may create a folder of this name in a shared place, and programs are run from it:
 * only one that is ours and that nobody else can write is taken.
 * @param {string} folder
 */
function privateFolder(folder) {
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const { uid, mode } = lstatSync(folder);
  if (!lstatSync(folder).isDirectory() || uid !== process.getuid?.() || (mode & 0o022) !== 0) {
    throw new Error(`${folder} belongs to somebody else; set OUTBOX_SERVICES_HOME to a folder that the server users can enter`);
  }
  return folder;
}
