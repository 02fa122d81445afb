// promtool, Prometheus's own checker: installed, else unpacked from the machine's own Debian suite.
import { join } from 'node:path';
import { hasApt, unpackForThisMachine } from './debian.mjs';
import { download } from './download.mjs';
import { findProgram } from './process.mjs';

/** @param {(line: string) => void} say @returns {Promise<string | undefined>} `undefined` where it is not to be had */
export async function promtool(say) {
  const found = findProgram('promtool');
  if (found || process.platform !== 'linux' || !hasApt()) return found;
  const root = await download('prometheus', (folder) => unpackForThisMachine(['prometheus'], folder), say);
  return join(root, 'usr/bin/promtool');
}
