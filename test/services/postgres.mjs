// PostgreSQL: the newest installed server, else the one of the machine's own Debian suite.
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { askPostgres } from './ask.mjs';
import { installedOrUnpacked } from './installed.mjs';

const DEBIAN = '/usr/lib/postgresql';

/** @type {import('./native.mjs').Service} */
export const postgres = {
  name: 'postgres',
  variable: 'OUTBOX_POSTGRES_URL',
  scheme: 'postgres',
  user: 'postgres',
  database: 'outbox',
  defaultPort: 5432,
  runAs: ['postgres'],
  stopSignal: 'SIGINT',
  ready: askPostgres,

  prepare(say) {
    const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
    return installedOrUnpacked(this, say, {
      program: 'postgres',
      folders: versions.map((version) => join(DEBIAN, version, 'bin')),
      packages: ['postgresql'],
      unpackedAt: 'usr/lib/postgresql/*/bin/postgres',
    });
  },

  async initialise(program, { dataDir, run }) {
    const locale = process.platform === 'linux' ? 'C.UTF-8' : 'C';
    await run(join(dirname(program.command), 'initdb'), [
      '-D', dataDir, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', `--locale=${locale}`, '--no-sync',
    ], { env: program.env });
    await run(program.command, ['--single', '-D', dataDir, 'postgres'], { env: program.env, input: 'CREATE DATABASE outbox\n' });
  },

  start(program, { dataDir, port, settings }) {
    const all = {
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      max_connections: '300',
      shared_buffers: '128MB',
      ...settings,
    };
    return {
      command: program.command,
      env: program.env,
      args: ['-D', dataDir, '-p', String(port), ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    };
  },
};
