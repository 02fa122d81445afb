// promtool, Prometheus's own checker: installed, else unpacked from the machine's own Debian suite.
import { join } from 'node:path';
import { hasApt, unpackFile } from './debian.mjs';
import { download } from './download.mjs';
import { findProgram } from './process.mjs';

const PATH = 'usr/bin/promtool';

/** @param {(line: string) => void} say @returns {Promise<string | undefined>} `undefined` where it is not to be had */
export async function promtool(say) {
  const found = findProgram('promtool');
  if (found || process.platform !== 'linux' || !hasApt()) return found;
  const root = await download('promtool', (folder) => unpackFile('prometheus', PATH, folder), say);
  return join(root, PATH);
}
