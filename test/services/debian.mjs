// Debian packages unpacked into a folder: nothing is installed, no service starts, no right is needed.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram, run } from './process.mjs';

export function hasApt() {
  return findProgram('apt-get') !== undefined && findProgram('dpkg-deb') !== undefined;
}

export function isDebian() {
  return hasApt() && osRelease().ID === 'debian';
}

/** No server needs the Perl that its package's scripts are written in. @param {string} archive */
const isPerl = (archive) => /^(lib)?perl/.test(archive);

/**
 * Unpacks packages of the suite that this machine runs, with everything they need but the C library,
 * which must be the one of the machine's loader.
 * @param {string[]} packages @param {string} folder
 */
export async function unpackForThisMachine(packages, folder) {
  await unpack(packages, folder, undefined, (archive) => !isPerl(archive) && !/^(libc6|libc-bin)_/.test(archive));
}

/**
 * Unpacks packages of Debian's unstable suite with everything they need, down to the C library.
 * @param {string[]} packages @param {string} folder
 */
export async function unpackFromUnstable(packages, folder) {
  const keyring = ['gpg', 'pgp'].map((end) => `/usr/share/keyrings/debian-archive-keyring.${end}`).find(existsSync);
  const source = `deb ${keyring ? `[signed-by=${keyring}] ` : ''}${await debianMirror()} sid main\n`;
  await unpack(packages, folder, source, (archive) => !isPerl(archive));
}

/**
 * Takes one file out of a package of the suite that this machine runs. Nothing that the package asks for comes along.
 * @param {string} name @param {string} file such as `usr/bin/promtool` @param {string} folder
 */
export async function unpackFile(name, file, folder) {
  await withPrivateApt(undefined, async (apt, work) => {
    await apt('download', name);
    const archive = readdirSync(work).find((entry) => entry.endsWith('.deb'));
    if (!archive) throw new Error(`apt-get has downloaded nothing of ${name}`);
    await run('sh', ['-c', 'dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" "./$3"', 'sh', join(work, archive), folder, file]);
  });
}

/**
 * @param {string[]} packages @param {string} folder
 * @param {string | undefined} source a line for sources.list, in place of the machine's own sources
 * @param {(archive: string) => boolean} wanted
 */
async function unpack(packages, folder, source, wanted) {
  await withPrivateApt(source, async (apt, work) => {
    await apt('--yes', '--download-only', 'install', ...packages);
    const cache = join(work, 'cache', 'archives');
    const archives = readdirSync(cache).filter((file) => file.endsWith('.deb') && wanted(file));
    for (const archive of archives) await run('dpkg-deb', ['-x', join(cache, archive), folder]);
  });
}

/**
 * A private apt in a folder of its own, with its own lists and cache, that believes that nothing is installed.
 * @param {string | undefined} source
 * @param {(apt: (...args: string[]) => Promise<string>, work: string) => Promise<void>} use
 */
async function withPrivateApt(source, use) {
  const work = mkdtempSync(join(tmpdir(), 'outbox-apt-'));
  try {
    const at = (/** @type {string[]} */ ...path) => join(work, ...path);
    mkdirSync(at('state', 'lists', 'partial'), { recursive: true });
    mkdirSync(at('cache', 'archives', 'partial'), { recursive: true });
    writeFileSync(at('status'), '');
    const settings = {
      'Dir::State': at('state'),
      'Dir::State::status': at('status'),
      'Dir::Cache': at('cache'),
      'APT::Install-Recommends': 'false',
      'APT::Sandbox::User': '', // the folder is ours alone
      'Debug::NoLocking': 'true',
      'Acquire::Retries': '3',
    };
    if (source !== undefined) {
      writeFileSync(at('sources.list'), source);
      Object.assign(settings, { 'Dir::Etc::sourcelist': at('sources.list'), 'Dir::Etc::sourceparts': '/dev/null' });
    }
    const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    const apt = (/** @type {string[]} */ ...args) => run('apt-get', [...options, ...args], { cwd: work });
    await apt('update');
    await use(apt, work);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The mirror that the machine's own sources name for its own release. */
async function debianMirror() {
  const { VERSION_CODENAME } = osRelease();
  const format = '$(REPO_URI) $(RELEASE) $(COMPONENT)';
  const lines = (await run('apt-get', ['indextargets', '--no-release-info', '--format', format, 'Created-By: Packages'])).split('\n');
  const main = lines.map((line) => line.split(' ')).find(([, release, component]) => component === 'main' && release === VERSION_CODENAME);
  if (!main) throw new Error('the apt sources of this machine name no Debian mirror');
  return main[0];
}

/** @returns {Record<string, string>} */
function osRelease() {
  try {
    const lines = readFileSync('/etc/os-release', 'utf8').split('\n').filter((line) => line.includes('='));
    return Object.fromEntries(lines.map((line) => [line.split('=')[0], line.slice(line.indexOf('=') + 1).replaceAll('"', '')]));
  } catch {
    return {};
  }
}

/** @param {string} root @returns {string[]} where the unpacked shared libraries lie */
export function libraryFolders(root) {
  const triple = process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu';
  return [join(root, 'usr/lib', triple), join(root, 'lib', triple)];
}

/** @param {string} root @returns {string} the dynamic loader of an unpacked C library */
export function loader(root) {
  const name = process.arch === 'arm64' ? 'ld-linux-aarch64.so.1' : 'ld-linux-x86-64.so.2';
  return join(libraryFolders(root)[0], name);
}
