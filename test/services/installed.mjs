// A program that is installed, else unpacked from the machine's own Debian suite.
import { readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { hasApt, libraryFolders, unpackForThisMachine } from './debian.mjs';
import { download } from './download.mjs';
import { missing } from './missing.mjs';
import { findProgram } from './process.mjs';

/**
 * @param {import('./native.mjs').Service} service
 * @param {(line: string) => void} say
 * @param {{ program: string, folders?: string[], packages: string[], unpackedAt: string }} what
 *   `unpackedAt` may hold one `*`, a folder named by a version
 * @returns {Promise<import('./native.mjs').Program>}
 */
export async function installedOrUnpacked(service, say, { program, folders, packages, unpackedAt }) {
  const found = findProgram(program, folders);
  if (found) return { command: found, args: [] };
  if (process.platform !== 'linux' || !hasApt()) {
    throw missing(service, `the program ${program} is not installed, and there is no apt-get to take it from (Debian: ${packages[0]})`);
  }
  const root = await download(service.name, (folder) => unpackForThisMachine(packages, folder), say);
  const libraries = [...libraryFolders(root), process.env.LD_LIBRARY_PATH].filter(Boolean).join(delimiter);
  return { command: newest(root, unpackedAt), args: [], env: { LD_LIBRARY_PATH: libraries } };
}

/** @param {string} root @param {string} path */
function newest(root, path) {
  const [before, after] = path.split('*');
  if (after === undefined) return join(root, path);
  const versions = readdirSync(join(root, before)).sort((a, b) => Number(b) - Number(a));
  return join(root, before, versions[0], after);
}
