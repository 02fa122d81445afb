// Redis: the installed server, else the one of the machine's own Debian suite. It keeps nothing on disk.
import { askRedis } from './ask.mjs';
import { installedOrUnpacked } from './installed.mjs';

/** @type {import('./native.mjs').Service} */
export const redis = {
  name: 'redis',
  variable: 'OUTBOX_REDIS_URL',
  scheme: 'redis',
  user: '',
  database: '',
  defaultPort: 6379,
  runAs: [],
  stopSignal: 'SIGTERM',
  ready: askRedis,

  prepare(say) {
    return installedOrUnpacked(this, say, {
      program: 'redis-server',
      packages: ['redis-server'],
      unpackedAt: 'usr/bin/redis-server',
    });
  },

  async initialise() {},

  start(program, { dataDir, port, settings }) {
    const all = { bind: '127.0.0.1', port: String(port), dir: dataDir, save: '', appendonly: 'no', daemonize: 'no', ...settings };
    return { command: program.command, env: program.env, args: Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]) };
  },
};
