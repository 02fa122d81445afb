// A browser for tests: the one that is installed, else Debian's, unpacked.
import { delimiter, join } from 'node:path';
import { libraryFolders } from './debian.mjs';
import { installedOrUnpacked } from './installed.mjs';

const UNPACKED_AT = 'usr/lib/chromium/chromium';

/** @returns {Promise<{ executablePath: string, env: Record<string, string> }>} as Playwright's `launch` takes it */
export async function chromium() {
  const service = /** @type {import('./native.mjs').Service} */ ({ name: /** @type {any} */ ('chromium'), variable: 'OUTBOX_CHROMIUM' });
  const given = process.env.OUTBOX_CHROMIUM;
  const { command, env = {} } = given
    ? { command: given, env: {} }
    : await installedOrUnpacked(service, (line) => process.stderr.write(`chromium: ${line}\n`), {
        program: 'chromium',
        packages: ['chromium', 'fonts-dejavu-core'],
        unpackedAt: UNPACKED_AT,
      });
  return { executablePath: command, env: { ...definedOf(process.env), ...(env.LD_LIBRARY_PATH ? unpackedEnv(command, env.LD_LIBRARY_PATH) : {}) } };
}

/** Libraries in a folder of their own, and the fonts, are where they were unpacked. @param {string} command @param {string} libraries */
function unpackedEnv(command, libraries) {
  const root = command.slice(0, -UNPACKED_AT.length - 1);
  const pulse = libraryFolders(root).map((folder) => join(folder, 'pulseaudio'));
  return { LD_LIBRARY_PATH: [libraries, ...pulse].join(delimiter), FONTCONFIG_SYSROOT: root };
}

/** @param {NodeJS.ProcessEnv} env @returns {Record<string, string>} */
function definedOf(env) {
  return Object.fromEntries(Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
