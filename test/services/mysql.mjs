// MySQL: an installed server, else the one of Debian's unstable suite, run by its own loader.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { askMysql } from './ask.mjs';
import { isDebian, libraryFolders, loader, unpackFromUnstable } from './debian.mjs';
import { download } from './download.mjs';
import { findProgram, run } from './process.mjs';
import { missing } from './missing.mjs';

/** Both MySQL and MariaDB: modest memory, durable as they come. */
export const sharedSettings = {
  'bind-address': '127.0.0.1',
  'skip-name-resolve': 'ON',
  'innodb-buffer-pool-size': '256M',
  'max-connections': '400',
};

/** Sent at each start, harmless when it has happened before. @param {string} dir */
export function writeInitFile(dir) {
  const file = join(dir, 'init.sql');
  writeFileSync(file, [
    "CREATE USER IF NOT EXISTS root@'127.0.0.1' IDENTIFIED BY '';",
    "GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;",
    'CREATE DATABASE IF NOT EXISTS outbox CHARACTER SET utf8mb4;',
    '',
  ].join('\n'));
  return file;
}

/** @param {Record<string, string>} settings */
export function asOptions(settings) {
  return Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
}

/** @type {import('./native.mjs').Service} */
export const mysql = {
  name: 'mysql',
  variable: 'OUTBOX_MYSQL_URL',
  scheme: 'mysql',
  user: 'root',
  database: 'outbox',
  defaultPort: 3306,
  runAs: ['mysql'],
  stopSignal: 'SIGTERM',
  ready: askMysql,

  async prepare(say) {
    const installed = await installedMysql();
    if (installed) return { command: installed, args: ['--no-defaults'] };
    if (!isDebian()) throw missing(this, 'the program mysqld (MySQL 8 or later) is not installed, and this is not Debian, whose unstable suite has it');
    const root = await download('mysql-unstable', (folder) => unpackFromUnstable(['mysql-server-core'], folder), say);
    const usr = join(root, 'usr');
    return {
      command: loader(root),
      args: [
        '--library-path', [...libraryFolders(root), join(usr, 'lib/mysql/private')].join(':'),
        join(usr, 'sbin/mysqld'),
        '--no-defaults',
        `--basedir=${usr}`,
        `--lc-messages-dir=${join(usr, 'share/mysql')}`,
        `--plugin-dir=${join(usr, 'lib/mysql/plugin')}`,
      ],
    };
  },

  async initialise(program, { dir, dataDir, run }) {
    writeInitFile(dir);
    await run(program.command, [...program.args, '--initialize-insecure', '--secure-file-priv=NULL', `--datadir=${dataDir}`]);
  },

  start(program, { dir, dataDir, port, settings }) {
    const all = { ...sharedSettings, mysqlx: 'OFF', 'performance-schema': 'ON', ...settings };
    return {
      command: program.command,
      args: [
        ...program.args,
        '--secure-file-priv=NULL',
        `--datadir=${dataDir}`,
        `--port=${port}`,
        '--socket=mysql.sock', // in the data folder: a long path would not fit a socket's name
        '--pid-file=mysql.pid',
        `--init-file=${join(dir, 'init.sql')}`,
        ...asOptions(all),
      ],
    };
  },
};

/** A mysqld that is MySQL 8 or later: MariaDB installs one of the same name. */
async function installedMysql() {
  const found = findProgram('mysqld');
  if (!found) return undefined;
  const version = await run(found, ['--no-defaults', '--version']).catch(() => '');
  return /Ver ([89]|\d\d)\.(?!.*MariaDB)/.test(version) ? found : undefined;
}
