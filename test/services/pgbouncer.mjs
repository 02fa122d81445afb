// PgBouncer before a PostgreSQL server: the installed one, else the one of the machine's own Debian suite.
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { askPostgres } from './ask.mjs';
import { folderInServersHome } from './home.mjs';
import { installedOrUnpacked } from './installed.mjs';
import { HOST } from './native.mjs';
import { freePort } from './ports.mjs';
import { accountFor, launch, stopProcess } from './process.mjs';

const START_MS = 30_000;

/** @param {{ host: string, port: number, user: string, database: string }} target @returns {Promise<import('./pgbouncer.d.mts').PgBouncer>} */
export async function startPgBouncer({ host, port: serverPort, user, database }) {
  const service = /** @type {import('./native.mjs').Service} */ ({ name: /** @type {any} */ ('pgbouncer'), variable: '' });
  const program = await installedOrUnpacked(service, (line) => process.stderr.write(`pgbouncer: ${line}\n`), {
    program: 'pgbouncer',
    packages: ['pgbouncer'],
    unpackedAt: 'usr/sbin/pgbouncer',
  });
  const dir = mkdtempSync(join(folderInServersHome('data'), 'pgbouncer-'));
  const port = await freePort();
  const file = join(dir, 'pgbouncer.ini');
  const modes = ['session', 'transaction', 'statement'];
  writeFileSync(file, [
    '[databases]',
    ...modes.map((mode) => `${mode} = host=${host} port=${serverPort} user=${user} dbname=${database} pool_mode=${mode}`),
    '[pgbouncer]',
    `listen_addr = ${HOST}`,
    `listen_port = ${port}`,
    'auth_type = any',
    'unix_socket_dir =',
    '',
  ].join('\n'));
  const account = accountFor(['postgres']);
  if (account) for (const path of [dir, file]) chownSync(path, account.uid, account.gid);
  const id = await launch({ command: program.command, args: [file], env: program.env }, { cwd: dir, log: join(dir, 'server.log'), runAs: account });
  const stop = async () => {
    await stopProcess(id, 'SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  };
  for (const deadline = Date.now() + START_MS; ; await sleep(50)) {
    try {
      await askPostgres({ host: HOST, port, user, database: 'session' });
      return { host: HOST, port, user, stop };
    } catch (error) {
      if (Date.now() < deadline) continue;
      await stop();
      throw error;
    }
  }
}
