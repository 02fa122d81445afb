// MariaDB: the installed server, else the one of the machine's own Debian suite.
import { dirname, join } from 'node:path';
import { askMysql } from './ask.mjs';
import { asOptions, sharedSettings, writeInitFile } from './mysql.mjs';
import { installedOrUnpacked } from './installed.mjs';

/** @type {import('./native.mjs').Service} */
export const mariadb = {
  name: 'mariadb',
  variable: 'OUTBOX_MARIADB_URL',
  scheme: 'mariadb',
  user: 'root',
  database: 'outbox',
  defaultPort: 3306,
  runAs: ['mysql'],
  stopSignal: 'SIGTERM',
  ready: askMysql,

  prepare(say) {
    return installedOrUnpacked(this, say, {
      program: 'mariadbd',
      packages: ['mariadb-server-core', 'mariadb-server'],
      unpackedAt: 'usr/sbin/mariadbd',
    });
  },

  async initialise(program, { dir, dataDir, run }) {
    writeInitFile(dir);
    const base = dirname(dirname(program.command));
    await run(join(base, 'bin/mariadb-install-db'), [
      '--no-defaults',
      `--basedir=${base}`,
      `--datadir=${dataDir}`,
      '--auth-root-authentication-method=normal',
      '--skip-name-resolve',
      '--skip-test-db',
      // As MySQL and newer versions have it, and only to be had now: with the undo log in the file of the tables nothing can
      // even be deleted when that is full.
      '--innodb-undo-tablespaces=3',
    ], { env: program.env });
  },

  start(program, { dir, dataDir, port, settings }) {
    return {
      command: program.command,
      env: program.env,
      args: [
        '--no-defaults',
        `--basedir=${dirname(dirname(program.command))}`,
        `--datadir=${dataDir}`,
        `--port=${port}`,
        '--socket=mariadb.sock',
        '--pid-file=mariadb.pid',
        `--init-file=${join(dir, 'init.sql')}`,
        ...asOptions({ ...sharedSettings, 'performance-schema': 'ON', ...settings }),
      ],
    };
  },
};
